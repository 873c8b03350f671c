// @module-tag attack
import { expect, test, vi } from 'vitest';
import type { CompletionStream } from '../../../src/ai/routing/call-provider.js';
import type { TokenUsage } from '../../../src/ai/completion/completion.js';
import { StreamUsage } from '../../../src/ai/routing/stream-usage.js';
import { DEFAULT_MAX_OUTPUT } from '../../../src/ai/completion/token-bound.js';

const REQUEST = { messages: [{ role: 'user', content: 'x'.repeat(400) }] };

/** Creates a stream with this many pieces and bytes, whose provider reports the usage `said`. */
function used(said: TokenUsage | undefined, pieces: number, bytes = pieces * 4): StreamUsage {
  // The test does not read its chunks.
  const stream = { usage: () => said, bytes: () => bytes } as CompletionStream;
  const usage = new StreamUsage(REQUEST, stream);
  for (let count = 0; count < pieces; count++) usage.countPiece();
  return usage;
}

test('a stream without a reported usage counts a token per piece and a token per four request bytes', () => {
  const { inputTokens, outputTokens } = used(undefined, 30).soFar;
  expect(outputTokens).toBe(30);
  expect(inputTokens).toBeGreaterThan(100);
  expect(inputTokens).toBeLessThan(120);
});

test('a stream that is cut off counts the pieces sent, even if its first usage was lower', () => {
  expect(used({ inputTokens: 7, outputTokens: 1 }, 30).soFar).toEqual({
    inputTokens: 7,
    outputTokens: 30,
  });
  expect(used({ inputTokens: 7, outputTokens: 50 }, 30).soFar.outputTokens).toBe(50);
});

test('a stream counts a token per four bytes, however few its pieces', () => {
  expect(used(undefined, 1, 125_000).soFar.outputTokens).toBe(31_250);
  expect(used({ inputTokens: 7, outputTokens: 1 }, 1, 125_000).soFar.outputTokens).toBe(31_250);
});

test('a silent stream counts as thinking, at most up to its output limit', () => {
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

test('a complete stream counts the usage that the provider reported', () => {
  const whole = used({ inputTokens: 7, outputTokens: 28 }, 30);
  whole.complete();
  expect(whole.soFar).toEqual({ inputTokens: 7, outputTokens: 28 });
});
