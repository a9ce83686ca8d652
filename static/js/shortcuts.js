// What all keyboard shortcuts ask first: whether somebody types, and whether single keys act alone or with Alt.

export const isTyping = (target) =>
  target.closest("input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable]");

export const areSingleKeysOn = () => document.documentElement.dataset.singleKeys !== "off";
