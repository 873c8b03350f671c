import { describe, expect, test } from 'vitest';
import { OpenToolCalls } from '../../../src/ai/usage/open-tool-calls.js';
import { countedName, toolCounts } from '../../../src/ai/usage/tool-counts.js';
import { isFailedResult } from '../../../src/ai/usage/tool-result.js';
import { ToolTally } from '../../../src/ai/usage/tool-tally.js';

const TOOLS = [{ type: 'function', function: { name: 'look' } }];
const ASKED = { messages: [{ role: 'user', content: 'hello' }], tools: TOOLS };
const HOUR_MS = 60 * 60_000;

interface Called {
  readonly id: string;
  readonly name: unknown;
  readonly index?: number;
}

const callOf = ({ id, index, name }: Called) => ({
  ...(index !== undefined && { index }),
  id,
  type: 'function',
  function: { name, arguments: '{}' },
});
const answerWith = (...calls: readonly Called[]) =>
  JSON.stringify({ choices: [{ message: { role: 'assistant', tool_calls: calls.map(callOf) } }] });
const chunkWith = (...calls: readonly object[]) =>
  JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: calls } }] });
const resultOf = (id: string, content: unknown = 'seen') => ({
  role: 'tool',
  tool_call_id: id,
  content,
});

/** Creates calls of AI by one caller, with a clock. */
function aiCalls() {
  let now = 0;
  const open = new OpenToolCalls(() => now);
  const begin = (caller: string, ...messages: { role: string; [field: string]: unknown }[]) =>
    new ToolTally(open, caller, { ...ASKED, messages: [...ASKED.messages, ...messages] });
  return {
    open,
    begin,
    pass: (ms: number) => (now += ms),
    /** Answers with calls of `look`, under these ids. */
    call(caller: string, ...ids: readonly string[]) {
      const tally = begin(caller);
      tally.readAnswer(answerWith(...ids.map((id) => ({ id, name: 'look' }))));
      return tally.end();
    },
  };
}

const COUNTED = { name: 'look', calls: 0, completed: 0, successes: 0, ms: 0 };

describe('calls in an answer', () => {
  test('counts each call under its name, also of several answers in one', () => {
    const tally = aiCalls().begin('ada');
    const [one, two] = [
      { id: 'a', name: 'look' },
      { id: 'b', name: 'listen' },
    ].map(callOf);
    tally.readAnswer(
      JSON.stringify({
        choices: [{ message: { tool_calls: [one, two] } }, { message: { tool_calls: [one] } }],
      }),
    );
    expect(tally.end()).toEqual([
      { ...COUNTED, calls: 2 },
      { ...COUNTED, name: 'listen', calls: 1 },
    ]);
  });

  test('counts a call of a stream once, for any number of pieces of its arguments and name', () => {
    const tally = aiCalls().begin('ada');
    tally.readChunk(JSON.stringify({ choices: [{ index: 0, delta: { role: 'assistant' } }] }));
    tally.readChunk(chunkWith(callOf({ index: 0, id: 'a', name: 'look' })));
    tally.readChunk(chunkWith({ index: 0, function: { arguments: '{"name"' } }));
    tally.readChunk(chunkWith({ index: 0, id: 'a', function: { name: 'look', arguments: ':1' } }));
    tally.readChunk(chunkWith({ index: 0, function: { name: '', arguments: '}' } }));
    tally.readChunk(chunkWith(callOf({ index: 1, id: 'b', name: 'look' })));
    expect(tally.soFar).toEqual([{ ...COUNTED, calls: 2 }]);
    expect(tally.end()).toEqual([{ ...COUNTED, calls: 2 }]);
  });

  test('counts no calls of a request that offers no tools, nor of broken answers', () => {
    const open = new OpenToolCalls();
    const without = new ToolTally(open, 'ada', { messages: [] });
    without.readAnswer(answerWith({ id: 'a', name: 'look' }));
    expect(without.end()).toEqual([]);
    const tally = new ToolTally(open, 'ada', ASKED);
    for (const text of [
      '{"tool_calls"',
      '"tool_calls"',
      '{"choices":[{"message":{"tool_calls":[null,{"function":{"name":7}},{"function":{"name":""}}]}}]}',
      '{"choices":[{"message":{"tool_calls":{"a":1}}},null,7]}',
    ]) {
      tally.readAnswer(text);
    }
    expect(tally.end()).toEqual([]);
  });

  test('an answer that ends twice counts once', () => {
    const tally = aiCalls().begin('ada');
    tally.readAnswer(answerWith({ id: 'a', name: 'look' }));
    expect([tally.end().length, tally.end().length]).toEqual([1, 0]);
  });
});

describe('names of tools', () => {
  test('a name is cut at 128 characters, and is text that the database accepts', () => {
    expect(countedName('a'.repeat(200))).toBe('a'.repeat(128));
    expect(countedName(`${'a'.repeat(127)}👩‍🚀`)).toBe('a'.repeat(127));
    expect(countedName('a\0b\ud800c')).toBe('a\ufffdb\ufffdc');
    expect([countedName(''), countedName(7), countedName(undefined)]).toEqual(
      Array(3).fill(undefined),
    );
  });

  test('calls beyond 128 names of an answer are counted under one name', { tags: 'attack' }, () => {
    const tally = aiCalls().begin('ada');
    const all = Array.from({ length: 1_000 }, (_, each) => ({
      id: `call ${each}`,
      name: `${'\u0001'.repeat(127)}${each}`,
    }));
    tally.readAnswer(answerWith(...all.map((call, at) => ({ ...call, name: `tool ${at}` }))));
    const counts = tally.soFar;
    expect(Buffer.byteLength(JSON.stringify(counts))).toBeLessThan(1_502);
    const ended = tally.end();
    expect(ended).toHaveLength(129);
    expect(ended.at(-1)).toEqual({ ...COUNTED, name: '(other)', calls: 872 });
    expect(toolCounts.parse(ended)).toEqual(ended);
    const wide = aiCalls().begin('ada');
    wide.readAnswer(answerWith(...all));
    expect(Buffer.byteLength(JSON.stringify(wide.soFar))).toBeLessThan(1_502);
  });
});

describe('results', () => {
  test('a result completes its call once, with the time from the answer to the first request', () => {
    const { begin, call, pass } = aiCalls();
    expect(call('ada', 'a')).toEqual([{ ...COUNTED, calls: 1 }]);
    pass(250);
    const failed = begin('ada', resultOf('a')); // its AI call fails: nothing is recorded
    pass(1_000);
    const [first, second] = [begin('ada', resultOf('a')), begin('ada', resultOf('a'))];
    pass(5_000);
    expect(second.end()).toEqual([{ ...COUNTED, completed: 1, successes: 1, ms: 250 }]);
    expect([first.end(), failed.end(), begin('ada', resultOf('a')).end()]).toEqual([[], [], []]);
  });

  test('results of several calls in one request each count', () => {
    const { begin, call, pass } = aiCalls();
    call('ada', 'a', 'b', 'c');
    pass(10);
    const tally = begin('ada', resultOf('a'), resultOf('b', 'Error: no'), resultOf('other'));
    expect(tally.end()).toEqual([{ ...COUNTED, completed: 2, successes: 1, ms: 20 }]);
  });

  test("another caller's result completes nothing", { tags: 'attack' }, () => {
    const { begin, call } = aiCalls();
    call('agent:a', 'a');
    expect(begin('user:a', resultOf('a')).end()).toEqual([]);
    expect(begin('agent:a', resultOf('a')).end()).toMatchObject([{ completed: 1 }]);
  });

  test('a call is closed without a result after an hour', () => {
    const { begin, call, open, pass } = aiCalls();
    call('ada', 'a');
    call('bob', 'b');
    pass(HOUR_MS);
    const inTime = begin('ada', resultOf('a'));
    pass(1);
    expect(inTime.end()).toMatchObject([{ completed: 1, ms: HOUR_MS }]);
    expect(begin('bob', resultOf('b')).end()).toEqual([]);
    expect(open.size).toBe(1);
    call('ada', 'c');
    expect(open.size).toBe(1);
  });

  test('an id that is used again names the later call', () => {
    const { begin, call, open, pass } = aiCalls();
    call('ada', 'a');
    pass(100);
    call('ada', 'a');
    expect(open.size).toBe(1);
    pass(5);
    expect(begin('ada', resultOf('a')).end()).toMatchObject([{ completed: 1, ms: 5 }]);
  });

  test('a conversation without calls of the caller is not searched for results', () => {
    const open = new OpenToolCalls();
    const message = {
      get role(): string {
        throw new Error('was read');
      },
    };
    expect(new ToolTally(open, 'ada', { messages: [message] }).end()).toEqual([]);
  });
});

describe('open calls', { tags: 'attack' }, () => {
  test('a caller has at most 1,000 pending calls, the latest ones', () => {
    const { begin, call, open } = aiCalls();
    const ids = Array.from({ length: 1_500 }, (_, each) => `call ${each}`);
    call('ada', ...ids);
    call('bob', 'b');
    expect(open.size).toBe(1_001);
    expect(begin('ada', resultOf('call 499'), resultOf('call 500')).end()).toMatchObject([
      { completed: 1 },
    ]);
    expect(begin('bob', resultOf('b')).end()).toMatchObject([{ completed: 1 }]);
  });

  test('all callers together have at most 50,000 open calls, the latest ones', () => {
    const { begin, call, open } = aiCalls();
    const ids = Array.from({ length: 1_000 }, (_, each) => `call ${each}`);
    for (let each = 0; each < 60; each += 1) call(`user ${each}`, ...ids);
    expect(open.size).toBe(50_000);
    expect(begin('user 9', resultOf('call 999')).end()).toEqual([]);
    expect(begin('user 10', resultOf('call 0')).end()).toMatchObject([{ completed: 1 }]);
  });

  test('a call with a long id, or without one, is counted and never completed', () => {
    const { begin, call, open } = aiCalls();
    const long = 'a'.repeat(257);
    expect(call('ada', long, '')).toEqual([{ ...COUNTED, calls: 2 }]);
    expect(open.size).toBe(0);
    expect(begin('ada', resultOf(long), resultOf('')).end()).toEqual([]);
  });
});

test.each([
  ...['Error: no such file', 'Error', '{"isError":true}', '{"ok":false}', '{"success":false}'],
  ...['{"status":"error"}', '{"error":"no"}', '{"error":{}}', ' \n{"error":0}'],
])('%s is a failure', (content) => {
  expect(isFailedResult(content)).toBe(true);
  expect(isFailedResult([{ type: 'text', text: content }])).toBe(true);
});

test.each([
  ...['seen', '', 'an Error', 'error', '{"error":null}', '{"isError":false}', '{"ok":true}'],
  ...['{"status":"failed"}', '{"success":"false"}', '["error"]', '{"error":', '"Error"', '{}'],
])('%s is no failure', (content) => {
  expect(isFailedResult(content)).toBe(false);
  expect(isFailedResult([{ type: 'text', text: content }, { type: 'image_url' }, null])).toBe(
    false,
  );
});

test.each([undefined, null, 7, {}, [], [7]])(
  'a result with the content %j is no failure',
  (content) => {
    expect(isFailedResult(content)).toBe(false);
  },
);
