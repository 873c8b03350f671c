// @module-tag attack
import { expect, test, vi } from 'vitest';
import type { CompletionStream } from '../../../src/ai/routing/ask-provider.js';
import type { TokenUsage } from '../../../src/ai/completion/completion.js';
import { StreamUsage } from '../../../src/ai/routing/stream-usage.js';
import { DEFAULT_MAX_OUTPUT } from '../../../src/ai/completion/token-bound.js';

const REQUEST = { messages: [{ role: 'user', content: 'x'.repeat(400) }] };

/** A stream of so many pieces and bytes, of which its provider says this. */
function used(said: TokenUsage | undefined, pieces: number, bytes = pieces * 4): StreamUsage {
  // Its chunks are not asked for here.
  const stream = { usage: () => said, bytes: () => bytes } as CompletionStream;
  const usage = new StreamUsage(REQUEST, stream);
  for (let count = 0; count < pieces; count++) usage.countPiece();
  return usage;
}

test('a stream of which nothing is said has used about a token a piece, and a fourth of what was asked', () => {
  const { inputTokens, outputTokens } = used(undefined, 30).soFar;
  expect(outputTokens).toBe(30);
  expect(inputTokens).toBeGreaterThan(100);
  expect(inputTokens).toBeLessThan(120);
});

test('one that is cut off has used what it sent, also where less was said at its beginning', () => {
  expect(used({ inputTokens: 7, outputTokens: 1 }, 30).soFar).toEqual({
    inputTokens: 7,
    outputTokens: 30,
  });
  expect(used({ inputTokens: 7, outputTokens: 50 }, 30).soFar.outputTokens).toBe(50);
});

test('however few pieces it comes in, four bytes are a token', () => {
  expect(used(undefined, 1, 125_000).soFar.outputTokens).toBe(31_250);
  expect(used({ inputTokens: 7, outputTokens: 1 }, 1, 125_000).soFar.outputTokens).toBe(31_250);
});

test('one that says nothing thinks, as long as its answer may be', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    const silent = used(undefined, 1, 0);
    vi.advanceTimersByTime(20_000);
    expect(silent.soFar.outputTokens).toBe(2_000);
    vi.advanceTimersByTime(3_600_000);
    expect(silent.soFar.outputTokens).toBe(DEFAULT_MAX_OUTPUT);
    silent.complete();
    expect(silent.soFar.outputTokens).toBe(1);
  } finally {
    vi.useRealTimers();
  }
});

test('one that has come to its end has used what was said', () => {
  const whole = used({ inputTokens: 7, outputTokens: 28 }, 30);
  whole.complete();
  expect(whole.soFar).toEqual({ inputTokens: 7, outputTokens: 28 });
});
