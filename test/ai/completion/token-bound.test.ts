import { describe, expect, test } from 'vitest';
import type { ChatBody, ChatMessage } from '../../../src/ai/completion/completion.js';
import {
  DEFAULT_MAX_OUTPUT,
  tokenBound,
  usageEstimate,
  withOutputBound,
} from '../../../src/ai/completion/token-bound.js';

/** Texts and their token counts in o200k_base, cl100k_base and Llama 3's tokenizer. */
const COUNTED: readonly [string, string, readonly number[]][] = [
  ['English', 'The quick brown fox jumps over the lazy dog, then naps.', [13, 14, 14]],
  ['Chinese', '机器学习模型把文字切成小块。', [10, 17, 11]],
  ['Arabic', 'النموذج يقسم النص إلى أجزاء صغيرة.', [10, 24, 15]],
  ['Hindi', 'मॉडल पाठ को छोटे टुकड़ों में बाँटता है।', [15, 43, 23]],
  ['Thai', 'แบบจำลองแบ่งข้อความออกเป็นส่วนเล็กๆ', [11, 35, 14]],
  ['emoji', '👩‍👩‍👧‍👦🏳️‍🌈🧑🏽‍🚀👍🏿', [28, 44, 39]],
  ['rare scripts', '𒀀𒁀𓀀𐍈⟁ꙮ﷽', [24, 24, 24]],
  ['code', 'for (let i = 0; i < 10; i++) { a[i] ??= `${i}`; }', [26, 26, 26]],
  ['controls', '\u0001\u0002\u0003\u200b\u2028\ufeff', [7, 8, 7]],
  ['stacked marks', 'Z̷̢̧͈̈́ä̶̦́l̵̝̆g̴̹̀ö̶́', [32, 35, 32]],
];

/** Tokens added by OpenAI's chat format: 4 for a message with its role, and 3 before the answer. */
const FRAME = 4 + 3;

/** Tokens of the system prompt that Anthropic adds for a model with tools. */
const ANTHROPIC_TOOLS = 346;

const asked = (content: unknown, rest: Omit<Partial<ChatBody>, 'messages'> = {}): ChatBody => ({
  messages: [{ role: 'user', content }],
  ...rest,
});

/** Context window in tokens of the largest model of a route. */
const WINDOW = 1_000_000;

/** Tokens held for only the input. */
const inputOf = (request: ChatBody) => tokenBound({ ...request, max_tokens: 1, n: 1 }, WINDOW) - 1;

describe('input token bound', { tags: 'attack' }, () => {
  test.each(COUNTED)(
    'holds at least the tokens counted by any tokenizer for %s',
    (_name, text, counts) => {
      for (const count of counts) {
        expect(inputOf(asked(text))).toBeGreaterThanOrEqual(count + FRAME);
        expect(inputOf(asked([{ type: 'text', text }]))).toBeGreaterThanOrEqual(count + FRAME);
      }
    },
  );

  test('holds enough for a conversation of 1,000 short messages', () => {
    const messages = Array.from({ length: 1_000 }, () => ({ role: 'user', content: 'a' }));
    expect(inputOf({ messages })).toBeGreaterThanOrEqual(1_000 * (1 + FRAME));
  });

  test('holds enough for tools, tool calls and their results', () => {
    const parameters = { type: 'object', properties: { city: { type: 'string' } } };
    const tool = { type: 'function', function: { name: 'weather', parameters } };
    const call = {
      id: 'call_1',
      type: 'function',
      function: { name: 'weather', arguments: '{}' },
    };
    const messages: ChatMessage[] = [
      { role: 'assistant', content: null, tool_calls: [call] },
      { role: 'tool', tool_call_id: 'call_1', content: 'sunny' },
    ];
    const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value));
    expect(inputOf({ messages, tools: [tool] })).toBeGreaterThanOrEqual(
      bytes(tool) + bytes(call) + bytes('sunny') + 2 * FRAME + ANTHROPIC_TOOLS,
    );
  });

  test('counts images by their number, not by their size', () => {
    const image = (url: string) => ({ type: 'image_url', image_url: { url } });
    const small = inputOf(asked([image('data:image/png;base64,AAAA')]));
    const large = inputOf(asked([image(`data:image/png;base64,${'A'.repeat(5_000_000)}`)]));
    const two = inputOf(
      asked([image('data:image/png;base64,A'), image('DATA:image/png;base64,B')]),
    );
    // OpenAI counts 765 for a photo in high detail, Anthropic 1,600, Gemini 258 a tile.
    expect(small).toBeGreaterThanOrEqual(1_600 + FRAME);
    expect(large).toBe(small);
    expect(two).toBeGreaterThanOrEqual(small + 1_600);
  });

  test.each([
    [{ url: 'https://example.com/a.png' }],
    [{ url: 'http://data:image/' }],
    [{}],
    [null],
  ])('holds the whole context window for an image behind a URL: %j', (image_url) => {
    const elsewhere = [
      { type: 'text', text: 'what is this?' },
      { type: 'image_url', image_url },
    ];
    expect(inputOf(asked(elsewhere))).toBe(WINDOW);
    const long = {
      messages: [...asked('x'.repeat(WINDOW)).messages, ...asked(elsewhere).messages],
    };
    expect(inputOf(long)).toBeGreaterThan(WINDOW);
  });

  test.each([
    ['nothing', undefined],
    ['null', null],
    ['no parts', []],
    ['parts that say nothing', [{ type: 'text' }, {}]],
  ])('returns a bound for content that is %s', (_name, content) => {
    const bound = tokenBound(asked(content), WINDOW);
    expect(Number.isSafeInteger(bound)).toBe(true);
    expect(bound).toBeGreaterThan(DEFAULT_MAX_OUTPUT);
  });
});

describe('output token bound', () => {
  /** Bound of input and output, for an input of about ten tokens. */
  const boundOf = (rest: Omit<Partial<ChatBody>, 'messages'>) =>
    tokenBound(asked('hi', rest), WINDOW);
  const QUESTION = 1 + FRAME;

  test('holds the output tokens that the request allows', () => {
    expect(boundOf({ max_tokens: 50 })).toBeGreaterThanOrEqual(50 + QUESTION);
    expect(boundOf({ max_tokens: 50 })).toBeLessThan(150);
    expect(boundOf({ max_completion_tokens: 70 })).toBeGreaterThanOrEqual(70 + QUESTION);
  });

  test('holds the higher of max_tokens and max_completion_tokens, since providers differ in which they use', () => {
    const first = { max_tokens: 1_000, max_completion_tokens: 1 };
    const second = { max_tokens: 1, max_completion_tokens: 1_000 };
    expect(boundOf(first)).toBeGreaterThanOrEqual(1_000 + QUESTION);
    expect(boundOf(second)).toBeGreaterThanOrEqual(1_000 + QUESTION);
  });

  test('multiplies the output tokens by the number of answers', () => {
    expect(boundOf({ max_tokens: 100, n: 8 })).toBeGreaterThanOrEqual(800 + QUESTION);
    expect(boundOf({ max_tokens: 100, n: null })).toBeLessThan(200);
  });

  test('holds the default limit that a request without one is sent with', () => {
    const request = { ...asked('hi'), model: 'any' };
    expect(tokenBound(request, WINDOW)).toBeGreaterThanOrEqual(DEFAULT_MAX_OUTPUT + QUESTION);
    const bounded = (maxOutput?: number) => withOutputBound(request, { maxOutput, isHeld: true });
    expect(bounded().max_tokens).toBe(DEFAULT_MAX_OUTPUT);
    expect(bounded(4_096).max_tokens).toBe(4_096);
    expect(bounded(1_000_000).max_tokens).toBe(DEFAULT_MAX_OUTPUT);
    expect(withOutputBound(request, { isHeld: false })).toBe(request);
  });

  test('adds a budget for thinking to the default limit', () => {
    const thinking = { type: 'enabled', budget_tokens: 20_000 };
    const request = { ...asked('hi', { thinking }), model: 'any' };
    const most = DEFAULT_MAX_OUTPUT + 20_000;
    expect(withOutputBound(request, { isHeld: true }).max_tokens).toBe(most);
    expect(tokenBound(request, WINDOW)).toBeGreaterThanOrEqual(most);
  });

  test('leaves the limit of a request unchanged, unless the model writes less', () => {
    const own = { ...asked('hi', { max_completion_tokens: 7 }), model: 'any' };
    expect(withOutputBound(own, { maxOutput: 7, isHeld: true })).toBe(own);
    const both = { ...own, max_tokens: 9 };
    expect(withOutputBound(both, { maxOutput: 5, isHeld: false })).toEqual({
      ...both,
      max_tokens: 5,
      max_completion_tokens: 5,
    });
  });
});

test('an estimate for a response without usage is at most the tokens held', () => {
  for (const [, text] of COUNTED) {
    const request = asked(text, { max_tokens: 20 });
    const { inputTokens, outputTokens } = usageEstimate(request, 20);
    expect(inputTokens + outputTokens).toBeLessThanOrEqual(tokenBound(request, WINDOW));
    expect(Number.isSafeInteger(inputTokens)).toBe(true);
  }
});

test('a request is scanned once, however often its usage is estimated', () => {
  let checks = 0;
  const request: ChatBody = {
    ...asked('hi'),
    get messages() {
      checks++;
      return asked('hi').messages;
    },
  };
  const first = usageEstimate(request, 1);
  const once = checks;
  expect([usageEstimate(request, 1), checks]).toEqual([first, once]);
});
