import { Readable } from 'node:stream';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { eventStream, type ServerEvent } from '../../../api/http/sse.js';

test('closes the source when its stream ends, even if it was never read', async () => {
  for (const events of [0, 1]) {
    let left = false;
    const { source } = eventStream(
      (async function* (): AsyncGenerator<ServerEvent> {
        try {
          for (let n = 0; ; n++) yield { data: await Promise.resolve(n) };
        } finally {
          left = true;
        }
      })(),
    );
    if (!(source instanceof Readable)) throw new Error('expected a readable stream');
    if (events > 0) await once(source, 'data');
    source.destroy();
    await expect.poll(() => left).toBe(true);
  }
});
