// @module-tag attack
import { expect, test } from 'vitest';
import { agentName } from '../../src/agents/model/agent-config.js';
import { isVisible } from '../../src/lib/visible-text.js';

test.each(['Ada', 'Zoë 2', 'अदा', '阿达', 'שלום', '👩‍💻 at work', '❤️', '👍🏽', '🏳️‍🌈'])(
  'accepts the visible name %s',
  (name) => {
    expect(isVisible(name)).toBe(true);
    expect(agentName.safeParse(name).success).toBe(true);
  },
);

test.each([
  ['turned by a right-to-left override', 'invoice\u202Efdp.exe'],
  ['an isolate', 'a\u2066b'],
  ['a mark of direction', 'ada\u200F'],
  ['a zero-width space', 'a\u200Bda'],
  ['a joiner beside letters', 'a\u200Dda'],
  ['a variation selector beside a letter', 'a\uFE0F'],
  ['a byte order mark', '\uFEFFada x'],
  ['a soft hyphen', 'a\u00ADda'],
  ['a Hangul filler', '\u3164'],
  ['a tag', 'ada\u{E0041}'],
  ['a line of its own', 'a\u2028b'],
  ['a control', 'a\u0007b'],
])('refuses a name with %s', (_what, name) => {
  expect(isVisible(name)).toBe(false);
  expect(agentName.safeParse(`x${name}x`).success).toBe(false);
});
