import { expect, test } from 'vitest';
import type { CompletionStream } from '../../src/ai/ask-provider.js';
import type { TokenUsage } from '../../src/ai/completion.js';
import { StreamUsage } from '../../src/ai/stream-usage.js';

const REQUEST = { messages: [{ role: 'user', content: 'x'.repeat(400) }] };

/** A stream of so many pieces, of which its provider says this. */
function used(said: TokenUsage | undefined, pieces: number): StreamUsage {
  // Its chunks are not asked for here.
  const stream = { usage: () => said } as CompletionStream;
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

test('one that has come to its end has used what was said', () => {
  const whole = used({ inputTokens: 7, outputTokens: 28 }, 30);
  whole.complete();
  expect(whole.soFar).toEqual({ inputTokens: 7, outputTokens: 28 });
});
