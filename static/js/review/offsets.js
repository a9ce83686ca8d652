// Places in the words of a turn: characters of its text as it is shown, counted as the server counts them.
// Buttons among the words (those that copy code) are not words. A character outside the first plane is one.

const isWord = (node) => !node.parentElement.closest("button");
const length = (text) => {
  let pairs = 0;
  for (let at = 0; at < text.length; at += 1) {
    const unit = text.charCodeAt(at);
    if (unit >= 0xd800 && unit < 0xdc00) pairs += 1;
  }
  return text.length - pairs;
};

export const wordsIn = (turn) => {
  const walker = document.createTreeWalker(turn, NodeFilter.SHOW_TEXT);
  const nodes = [];
  while (walker.nextNode()) if (isWord(walker.currentNode)) nodes.push(walker.currentNode);
  return nodes;
};

export const textOf = (turn) => wordsIn(turn).map((node) => node.data).join("");

// How many characters of the turn stand before this end of a selection.
const before = (turn, container, offset) => {
  const range = document.createRange();
  range.setStart(turn, 0);
  range.setEnd(container, offset);
  let count = 0;
  for (const node of wordsIn(turn)) {
    if (!range.intersectsNode(node)) break;
    count += length(node === range.endContainer ? node.data.slice(0, range.endOffset) : node.data);
  }
  return count;
};

// The part of a selection that lies in one turn, or null where there is none.
export const placeOf = (range) => {
  const holder = range.startContainer;
  const turn = (holder.nodeType === Node.TEXT_NODE ? holder.parentElement : holder).closest(".as-written [data-turn]");
  if (!turn) return null;
  const inside = turn.contains(range.endContainer);
  const start = before(turn, range.startContainer, range.startOffset);
  const end = inside ? before(turn, range.endContainer, range.endOffset) : length(textOf(turn));
  const quote = [...textOf(turn)].slice(start, end).join("");
  return quote.trim() ? { turn, start, end, quote } : null;
};

// The other way: a range over the characters from start to end of a turn.
export const rangeOver = (turn, start, end) => {
  const range = document.createRange();
  let passed = 0;
  let begun = false;
  for (const node of wordsIn(turn)) {
    const here = length(node.data);
    const unit = (characters) => [...node.data].slice(0, characters).join("").length;
    if (!begun && start < passed + here) {
      range.setStart(node, unit(start - passed));
      begun = true;
    }
    if (begun && end <= passed + here) {
      range.setEnd(node, unit(end - passed));
      return range;
    }
    passed += here;
  }
  return null;
};
