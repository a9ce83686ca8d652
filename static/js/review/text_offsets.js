// Offsets into the text of a turn, in code points as on the server. Text of buttons (which copy code) does not count.

const isText = (node) => !node.parentElement.closest("button");
const length = (text) => {
  let pairs = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xd800 && unit < 0xdc00) pairs += 1;
  }
  return text.length - pairs;
};

export const textNodesIn = (turn) => {
  const walker = document.createTreeWalker(turn, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) if (isText(walker.currentNode)) nodes.push(walker.currentNode);
  return nodes;
};

export const textOf = (turn) => textNodesIn(turn).map((node) => node.data).join("");

// The number of characters of the turn before this end of a selection.
const offsetOf = (turn, container, offset) => {
  const range = document.createRange();
  range.setStart(turn, 0);
  range.setEnd(container, offset);
  let count = 0;
  for (const node of textNodesIn(turn)) {
    if (!range.intersectsNode(node)) break;
    count += length(node === range.endContainer ? node.data.slice(0, range.endOffset) : node.data);
  }
  return count;
};

// The part of a selection within its first turn, or null if there is none.
export const offsetsOf = (range) => {
  const holder = range.startContainer;
  const turn = (holder.nodeType === Node.TEXT_NODE ? holder.parentElement : holder).closest(".original-text [data-turn]");
  if (!turn) return null;
  const endsInside = turn.contains(range.endContainer);
  const start = offsetOf(turn, range.startContainer, range.startOffset);
  const end = endsInside ? offsetOf(turn, range.endContainer, range.endOffset) : length(textOf(turn));
  const quote = [...textOf(turn)].slice(start, end).join("");
  return quote.trim() ? { turn, start, end, quote } : null;
};

// The range over the characters from start to end of a turn.
export const rangeFromOffsets = (turn, start, end) => {
  const range = document.createRange();
  let position = 0;
  let hasStart = false;
  for (const node of textNodesIn(turn)) {
    const nodeLength = length(node.data);
    const unit = (characters) => [...node.data].slice(0, characters).join("").length;
    if (!hasStart && start < position + nodeLength) {
      range.setStart(node, unit(start - position));
      hasStart = true;
    }
    if (hasStart && end <= position + nodeLength) {
      range.setEnd(node, unit(end - position));
      return range;
    }
    position += nodeLength;
  }
  return null;
};
