import { Readable } from 'node:stream';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { eventStream, type ServerEvent } from '../../../api/http/sse.js';

test('a source is left when its stream ends, also when nobody ever read it', async () => {
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
    if (!(source instanceof Readable)) throw new Error('a stream is read');
    if (events > 0) await once(source, 'data');
    source.destroy();
    await expect.poll(() => left).toBe(true);
  }
});
