import { randomUUID } from 'node:crypto';
import { writeFile, utimes } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { rangeOf } from '../../api/http/byte-range.js';
import { OutboundClient } from '../../src/platform/outbound/outbound.js';
import { VideoProvider } from '../../src/videos/video-provider.js';
import { createWorkerServices } from '../../src/services.js';
import type { VideoSettings } from '../../src/videos/settings.js';
import { MAX_A_DAY, MAX_IN_FLIGHT, removeVideosOf, Videos } from '../../src/videos/videos.js';
import { MediaFiles } from '../../src/videos/media-files.js';
import { loadSettings } from '../../src/settings.js';
import type { Person } from '../money/wallets/support.js';
import { queryRows } from '../platform/database/catalog.js';
import { testEnvironment } from '../support/platform-environment.js';
import { PATH, videoSite, type VideoSite } from './support.js';

const never = new AbortController().signal;
const ignore = () => undefined;

const ELSEWHERE = 'The provider named a file that is not on its own hosts';

let site: VideoSite;
let ada: Person;

beforeAll(async () => {
  site = await videoSite();
});
afterAll(() => site?.close());
beforeEach(async () => {
  site.provider.faults = {};
  ada = await site.customer();
});

const steps = () => site.services.videoSteps;
const store = () => site.services.videoStore;
const request = (id: string) => steps().request(id, never);
const check = (id: string) => steps().check(id, never);
const fetchFile = (id: string) => steps().fetch(id, never, ignore);

/** Requests a video, and returns it with its prediction. */
async function asked(): Promise<{ id: string; predictionId: string }> {
  const id = await site.create(ada);
  const predictionId = (await request(id)) ?? '';
  await store().note(id, predictionId);
  return { id, predictionId };
}

/** Requests a video whose prediction has succeeded. */
async function succeeded(): Promise<string> {
  const { id, predictionId } = await asked();
  site.provider.finish(predictionId);
  return id;
}

async function completed(): Promise<string> {
  const id = await succeeded();
  await fetchFile(id);
  return id;
}

const failure = async (id: string) => {
  const { error, status, url } = await site.get(ada, id);
  return [status, url, error];
};
const requestsOf = (text: string) =>
  site.provider.requests.filter((each) => each.includes(text)).length;
const partsOf = async (id: string) => (await site.files()).filter((name) => name.startsWith(id));
const filesOf = () => new MediaFiles(site.dependencies.settings.videos.mediaRoot ?? '');

/** Returns the steps of a worker with other settings. */
function stepsWith(env: Readonly<Record<string, string>>) {
  const { log, settings } = site.dependencies;
  const { provider } = site;
  const given = { ...provider.env, MEDIA_ROOT: settings.videos.mediaRoot, ...env };
  const other = loadSettings(
    testEnvironment({ DATABASE_URL: site.database.url, INTERNAL_API_KEY: 'k'.repeat(32) }, given),
  );
  return createWorkerServices({ database: site.database.db, log, settings: other }).videoSteps;
}

const videosWith = (settings: VideoSettings) =>
  new Videos({ database: site.database.db, files: filesOf(), settings });

const create = (videos: Videos, { id }: Person = ada) =>
  videos.create(
    {
      actor: id,
      idempotencyId: randomUUID(),
      requestId: 'request',
      tenant: site.database.db.asUser(id),
    },
    { userId: id, isAdmin: false, plan: 'solo' },
    { prompt: 'A sunrise' },
  );

/** Reads a file, whose bytes are no text. */
async function bytes({ cookie }: Person, url: string | null, range?: string) {
  const answer = await site.raw(url ?? '', { cookie, ...(range !== undefined && { range }) });
  return {
    status: answer.status,
    headers: answer.headers,
    bytes: Buffer.from(await answer.arrayBuffer()),
  };
}
const owner = (sql: string) => queryRows<Record<string, unknown>>(site.database.ownerUrl, sql);

describe('a request for a video', () => {
  test.each([
    [{ prompt: '' }, 'prompt is required'],
    [{ prompt: 'x'.repeat(2_001) }, 'prompt must be at most 2000 characters'],
    [{ duration: 0 }, 'duration'],
    [{ duration: 11 }, 'duration'],
    [{ duration: 1.5 }, 'duration'],
    [{ aspectRatio: '4:3' }, 'aspectRatio'],
    [{ more: 1 }, 'more'],
  ])('a request for a video is refused with %j', async (more, error) => {
    const body = { prompt: 'A sunrise', ...more };
    const refused = await site.web(ada, 'POST', PATH, { body });
    expect([refused.status, refused.body.error]).toEqual([400, expect.stringContaining(error)]);
  });

  test("a request for a video needs a plan, and an agent of the user's own", async () => {
    const body = { prompt: 'A sunrise' };
    const unpaid = await site.web(await site.person(), 'POST', PATH, { body });
    expect([unpaid.status, unpaid.body.code]).toEqual([402, 'PLAN_REQUIRED']);
    const agentId = await site.agentOf(await site.customer());
    const foreign = await site.web(ada, 'POST', PATH, { body: { ...body, agentId } });
    expect(foreign.status).toBe(404);
    const own = await site.agentOf(ada);
    const id = await site.create(ada, { agentId: own });
    expect(await site.get(ada, id)).toMatchObject({ agentId: own, status: 'queued', url: null });
  });

  test('a request for a video is stored once for an Idempotency-Key', async () => {
    const send = () =>
      site.web(ada, 'POST', PATH, {
        body: { prompt: 'A sunrise' },
        headers: { 'idempotency-key': 'one' },
      });
    const [first, second] = [await send(), await send()];
    expect(second.body).toEqual(first.body);
    expect((await site.web(ada, 'GET', PATH)).body.count).toBe(1);
  });

  test.each([
    ['while the maximum number is in production', MAX_IN_FLIGHT, `settled_at = NULL`],
    ['when one is left of the day', MAX_A_DAY, `settled_at = now(), status = 'failed'`],
  ])('allows only one more video %s', async (_, limit, state) => {
    const { id: userId } = ada;
    await owner(
      `INSERT INTO videos (id, user_id, prompt)
         SELECT gen_random_uuid(), '${userId}', 'a' FROM generate_series(2, ${limit});
       UPDATE videos SET ${state} WHERE user_id = '${userId}'`,
    );
    const videos = videosWith(site.dependencies.settings.videos);
    const ends = await Promise.allSettled(Array.from({ length: 50 }, () => create(videos)));
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const refused = await site.web(ada, 'POST', PATH, { body: { prompt: 'A sunrise' } });
    expect([refused.status, refused.body]).toEqual([
      429,
      expect.objectContaining({ code: 'VIDEO_LIMIT_REACHED', current: limit, limit }),
    ]);
  });

  test('a request for a video is a 503 without a provider, which names the missing setting', async () => {
    const { settings } = site.dependencies;
    for (const [more, name] of [
      [{ apiToken: undefined }, 'VIDEO_API_TOKEN'],
      [{ model: undefined }, 'VIDEO_MODEL'],
    ] as const) {
      const made = create(videosWith({ ...settings.videos, ...more }));
      await expect(made).rejects.toThrow(`Videos are not available: ${name} is not set`);
    }
  });

  test('the last video of the day of all users is granted once, and operators are notified once', async () => {
    await owner('DELETE FROM video_days; DELETE FROM pending_notifications');
    const limited = videosWith({ ...site.dependencies.settings.videos, dailyTotal: 5 });
    for (let made = 0; made < 4; made++) await create(limited, await site.customer());
    const people = await Promise.all(Array.from({ length: 10 }, () => site.customer()));
    const fifty = Array.from({ length: 50 }, (_, n) => people[n % 10]);
    const ends = await Promise.allSettled(fifty.map((person) => create(limited, person)));
    expect(ends.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const end of ends) {
      if (end.status === 'rejected') expect(end.reason).toMatchObject({ status: 503 });
    }
    const notices = await owner(`SELECT event FROM pending_notifications`);
    expect(notices).toEqual([
      { event: expect.objectContaining({ event: 'videos_used_up', limit: 5 }) },
    ]);
    await owner('DELETE FROM video_days');
  });
});

describe('a prediction', () => {
  test('a prediction is requested once, however often the step is repeated', async () => {
    const before = site.provider.predictions.size;
    const id = await site.create(ada);
    const answers = await Promise.all([1, 2, 3, 4].map(() => request(id)));
    expect(new Set(answers.filter((each) => each !== undefined)).size).toBe(1);
    expect(site.provider.predictions.size).toBe(before + 1);
  });

  test('a prediction has 30 minutes from its request', async () => {
    const id = await site.create(ada);
    expect(await store().open(id)).toEqual({ isNew: true, leftMs: 30 * 60_000 });
    await request(id);
    await owner(`UPDATE videos SET asked_at = asked_at - interval '10 minutes' WHERE id = '${id}'`);
    const { leftMs } = (await store().open(id)) ?? { leftMs: 0 };
    expect(leftMs).toBeGreaterThan(19 * 60_000);
    expect(leftMs).toBeLessThanOrEqual(20 * 60_000);
  });

  test('a prediction is kept by a repeated step, if the result of the first was lost', async () => {
    const id = await site.create(ada);
    const before = site.provider.predictions.size;
    const predictionId = await request(id);
    expect(predictionId).toMatch(/^\w+$/);
    expect(await store().open(id)).toMatchObject({ isNew: false });
    expect(await request(id)).toBe(predictionId);
    expect(site.provider.predictions.size).toBe(before + 1);
    expect(await check(id)).toBe('running');
  });

  test('a prediction is returned by its step even if the step cannot store it', async () => {
    const id = await site.create(ada);
    await owner(
      `ALTER TABLE videos ADD CONSTRAINT fault CHECK (id <> '${id}' OR prediction_id IS NULL)`,
    );
    const predictionId = await request(id);
    await owner('ALTER TABLE videos DROP CONSTRAINT fault');
    expect(site.provider.predictions.has(predictionId ?? '')).toBe(true);
  });

  test.each(['lost', 'garbage', 'error'] as const)(
    'a prediction is not requested again after an answer that is %s',
    async (fault) => {
      const id = await site.create(ada);
      site.provider.faults = { create: fault };
      const before = requestsOf('/models/');
      expect(await request(id)).toBeUndefined();
      site.provider.faults = {};
      expect(await request(id)).toBeUndefined();
      expect(requestsOf('/models/')).toBe(before + 1);
      expect(await failure(id)).toEqual([
        'failed',
        null,
        expect.stringContaining('answer was lost'),
      ]);
    },
  );

  test('a prediction is not requested again after a process that died during the request', async () => {
    const id = await site.create(ada);
    expect(await store().claim(id)).toMatchObject({ prompt: 'A sunrise' });
    const before = requestsOf('/models/');
    expect(await request(id)).toBeUndefined();
    expect(requestsOf('/models/')).toBe(before);
    expect(await failure(id)).toEqual(['failed', null, expect.stringContaining('answer was lost')]);
  });

  test('a prediction is requested again if nothing reached the provider', async () => {
    const id = await site.create(ada);
    const away = stepsWith({ VIDEO_API_URL: 'http://127.0.0.1:1' });
    await expect(away.request(id, never)).rejects.toThrow('The video provider does not answer');
    expect((await site.get(ada, id)).status).toBe('queued');
    expect(await request(id)).toMatch(/^\w+$/);
  });

  test.each([401, 402, 429] as const)(
    'a prediction is requested again after status %i',
    async (create) => {
      const id = await site.create(ada);
      site.provider.faults = { create };
      await expect(request(id)).rejects.toThrow(`accepts no requests now (status ${create})`);
      expect((await site.get(ada, id)).status).toBe('queued');
      site.provider.faults = {};
      expect(await request(id)).toMatch(/^\w+$/);
    },
  );

  test('a refused prediction has the reason of the provider', async () => {
    site.provider.faults = { create: 'refused' };
    const id = await site.create(ada);
    expect(await request(id)).toBeUndefined();
    expect(await failure(id)).toEqual([
      'failed',
      null,
      'The provider refused the video (status 422)',
    ]);
  });

  test.each([
    ['failed', 'failed', 'The provider failed: The model ran out of memory'],
    ['canceled', 'cancelled', 'The provider cancelled the video'],
    ['aborted', 'cancelled', 'The provider cancelled the video'],
  ] as const)('a prediction ends the video if it is %s, as %s', async (end, status, error) => {
    const { id, predictionId } = await asked();
    expect(await check(id)).toBe('running');
    site.provider.faults = { end };
    site.provider.finish(predictionId);
    expect(await check(id)).toBe('ended');
    expect(await failure(id)).toEqual([status, null, error]);
  });

  test.each(['garbage', 'half', 'error', 'unknown-status'] as const)(
    'a prediction is read again after an answer that is %s',
    async (read) => {
      const { id } = await asked();
      site.provider.faults = { read };
      await expect(check(id)).rejects.toThrow();
      site.provider.faults = {};
      expect(await check(id)).toBe('running');
    },
  );

  test('a prediction ends the video if the provider has forgotten it', async () => {
    const { id } = await asked();
    site.provider.faults = { read: 'forgotten' };
    expect(await check(id)).toBe('ended');
    expect((await failure(id))[2]).toBe('The provider does not have the video any more');
  });
});

describe('a file', () => {
  test('the file of a video is stored, and served only to its owner', async () => {
    const id = await completed();
    const { url = '' } = await site.get(ada, id);
    const { sample } = site.provider;
    const whole = await bytes(ada, url);
    expect(whole.status).toBe(200);
    expect(whole.bytes.equals(sample)).toBe(true);
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      'accept-ranges': 'bytes',
      'content-length': String(sample.length),
      'content-type': 'video/mp4',
      'x-content-type-options': 'nosniff',
    });
    const bob = await site.customer();
    for (const address of [url, `${PATH}?id=${id}`]) {
      expect((await site.web(bob, 'GET', address ?? '')).status).toBe(404);
      expect((await site.web(undefined, 'GET', address ?? '')).status).toBe(401);
    }
    expect((await site.web(bob, 'GET', PATH)).body).toEqual({ videos: [], count: 0 });
  });

  test.each([
    ['bytes=0-99', 0, 100],
    ['bytes=100-', 100, undefined],
    ['bytes=-50', -50, undefined],
    ['bytes=0-999999', 0, undefined],
  ])('the file of a video is served in the range %s', async (range, from, to) => {
    const { url } = await site.get(ada, await completed());
    const { sample } = site.provider;
    const part = await bytes(ada, url, range);
    const expected = sample.subarray(from, to);
    expect(part.status).toBe(206);
    expect(part.bytes.equals(expected)).toBe(true);
    const start = from < 0 ? sample.length + from : from;
    const end = start + expected.length - 1;
    expect(part.headers.get('content-range')).toBe(`bytes ${start}-${end}/${sample.length}`);
  });

  test('the file of a video is served whole for an invalid range, and refused beyond its end', async () => {
    const { url } = await site.get(ada, await completed());
    const { sample } = site.provider;
    for (const range of ['bytes=5-3', 'lines=1-2', 'bytes=0-1,4-5', 'bytes=-', 'bytes=a-b']) {
      expect((await bytes(ada, url, range)).bytes).toHaveLength(sample.length);
    }
    const beyond = await bytes(ada, url, `bytes=${sample.length}-`);
    expect([beyond.status, beyond.headers.get('content-range')]).toEqual([
      416,
      `bytes */${sample.length}`,
    ]);
  });

  test.each([
    ['bytes=0-', 0, 'unsatisfiable'],
    ['bytes=-5', 0, 'unsatisfiable'],
    ['bytes=-0', 10, 'unsatisfiable'],
    ['bytes=-20', 10, { start: 0, end: 9 }],
    ['BYTES=9-9', 10, { start: 9, end: 9 }],
    [undefined, 10, undefined],
  ])('reads the range %j of %i bytes', (header, size, range) => {
    expect(rangeOf(header, size)).toEqual(range);
  });

  test.each([
    ['gone', 'The provider has already deleted the file'],
    ['html', 'The file of the provider is not a video'],
    ['empty', 'The file of the provider is not a video'],
    ['large', 'The file is larger than 500 MB, or than the limit for all files'],
    ['no-length', 'The provider sent a file without its length'],
    ['redirect', 'The provider refused the file (status 302)'],
  ] as const)('a file ends the video if it is %s', { tags: 'attack' }, async (file, error) => {
    site.provider.faults = { file };
    const id = await succeeded();
    await fetchFile(id);
    expect(await failure(id)).toEqual(['failed', null, error]);
    expect(await partsOf(id)).toEqual([]);
  });

  test('the file of a video is cut at the limit if it never ends', { tags: 'attack' }, async () => {
    site.provider.faults = { file: 'endless' };
    const id = await succeeded();
    await stepsWith({ MEDIA_LIMIT: '5m' }).fetch(id, never, ignore);
    expect((await failure(id))[2]).toContain('The file is larger');
    expect(await partsOf(id)).toEqual([]);
  });

  test.each(['half', 'error'] as const)(
    'the file of a video is fetched again if it is %s',
    async (file) => {
      site.provider.faults = { file };
      const id = await succeeded();
      await expect(fetchFile(id)).rejects.toThrow();
      expect(await partsOf(id)).toEqual([]);
      site.provider.faults = {};
      await Promise.all([fetchFile(id), fetchFile(id)]);
      expect((await site.get(ada, id)).status).toBe('completed');
      expect(await partsOf(id)).toEqual([id]);
    },
  );

  test.each<[unknown, string]>([
    [null, 'The provider named no file'],
    [{}, 'The provider named no file'],
    [[], 'The provider named no file'],
    ['not an address', ELSEWHERE],
    ['http://127.0.0.1:9/file.mp4', ELSEWHERE],
    ['http://169.254.169.254/latest/meta-data', ELSEWHERE],
    ['file:///etc/passwd', ELSEWHERE],
    ['http://replicate.delivery/file.mp4', ELSEWHERE],
    ['https://replicate.delivery:8443/file.mp4', ELSEWHERE],
    ['https://user@replicate.delivery/file.mp4', ELSEWHERE],
    ['https://replicate.delivery.example/file.mp4', ELSEWHERE],
    ['https://notreplicate.delivery/file.mp4', ELSEWHERE],
    ['https://replicate.delivery@10.0.0.1/file.mp4', ELSEWHERE],
  ])('the file of a video is not fetched from %j', { tags: 'attack' }, async (output, error) => {
    const { id, predictionId } = await asked();
    site.provider.finish(predictionId);
    const prediction = site.provider.predictions.get(predictionId);
    if (prediction) prediction.output = output;
    await fetchFile(id);
    expect(await failure(id)).toEqual(['failed', null, error]);
  });

  test('the file of a video is the first of several outputs', async () => {
    const { id, predictionId } = await asked();
    site.provider.finish(predictionId);
    const prediction = site.provider.predictions.get(predictionId);
    if (prediction) prediction.output = [prediction.output, 'http://10.0.0.1/second.mp4'];
    await fetchFile(id);
    expect((await site.get(ada, id)).status).toBe('completed');
  });

  test(
    'is not fetched from a name of the provider that leads to a private address',
    { tags: 'attack' },
    async () => {
      for (const address of ['10.0.0.1', '127.0.0.1', '::1', '169.254.169.254']) {
        const outbound = new OutboundClient({ resolve: () => Promise.resolve([address]) });
        const provider = new VideoProvider({
          settings: site.dependencies.settings.videos,
          webUrl: 'http://127.0.0.1',
          outbound,
        });
        expect(provider.isFile('https://pbxt.replicate.delivery/a.mp4')).toBe(true);
        const fetched = provider.download('https://pbxt.replicate.delivery/a.mp4', never, () =>
          Promise.resolve(),
        );
        await expect(fetched).rejects.toThrow('non-public address');
      }
    },
  );

  test('the file of a video has a name that no path can leave', { tags: 'attack' }, async () => {
    const files = new MediaFiles('/nowhere');
    for (const id of ['../x', 'a/b', '', '.', `${randomUUID()}/..`, `${randomUUID()}\0`]) {
      await expect(files.open(id)).rejects.toThrow(TypeError);
    }
  });
});

describe('the folder of media', () => {
  test.each([
    ['of a known size', undefined],
    ['of an unknown size', 'chunked'],
  ] as const)('is bounded: the oldest file is deleted for a new one %s', async (_, file) => {
    const { length } = site.provider.sample;
    await owner('UPDATE videos SET has_file = false');
    const first = await completed();
    ada = await site.customer();
    const second = await completed();
    await owner(`UPDATE videos SET completed_at = now() - interval '1 hour' WHERE id = '${first}'`);
    // Both files and a third are more than the limit.
    await owner(`UPDATE videos SET size = ${1024 ** 2 - length} WHERE id = '${second}'`);
    ada = await site.customer();
    const third = await succeeded();
    site.provider.faults = { file };
    await stepsWith({ MEDIA_LIMIT: '1m' }).fetch(third, never, ignore);
    const files = await site.files();
    expect([first, second, third].map((id) => files.includes(id))).toEqual([false, true, true]);
    const [row] = await owner(`SELECT has_file, size::int FROM videos WHERE id = '${first}'`);
    expect(row).toEqual({ has_file: false, size: length });
    expect((await site.get(ada, third)).status).toBe('completed');
  });

  test('keeps all files while a file of an unknown size fits', { tags: 'attack' }, async () => {
    await owner('UPDATE videos SET has_file = false');
    const first = await completed();
    ada = await site.customer();
    site.provider.faults = { file: 'chunked' };
    const second = await succeeded();
    await stepsWith({ MEDIA_LIMIT: '1m' }).fetch(second, never, ignore);
    const files = await site.files();
    expect([first, second].map((id) => files.includes(id))).toEqual([true, true]);
    const rows = await owner('SELECT size::int FROM videos WHERE has_file');
    expect(rows).toEqual([1, 2].map(() => ({ size: site.provider.sample.length })));
  });

  test('keeps no part of a file that is not accepted', async () => {
    const id = randomUUID();
    const refuses = (size: number) => Promise.resolve(size !== 6);
    const body = Readable.from([Buffer.from('a file')]);
    expect(await filesOf().write(id, body, refuses)).toBeUndefined();
    expect(await partsOf(id)).toEqual([]);
  });

  test('removes the partial files of a killed process, and no others', async () => {
    const id = await succeeded();
    const root = site.dependencies.settings.videos.mediaRoot ?? '';
    const [old, young] = [`${randomUUID()}.old.part`, `${randomUUID()}.young.part`];
    const own = `${id}.own.part`;
    for (const name of [old, young, own]) await writeFile(path.join(root, name), 'a part');
    const hours = (count: number) => new Date(Date.now() - count * 3_600_000);
    await utimes(path.join(root, old), hours(2), hours(2));
    await fetchFile(id);
    const files = await site.files();
    expect([old, young, own].map((name) => files.includes(name))).toEqual([false, true, false]);

    // A video that is not fetched again loses its part at its end.
    const { id: late } = await asked();
    await writeFile(path.join(root, `${late}.own.part`), 'a part');
    await store().settle(late, 'late');
    expect((await site.files()).filter((name) => name.startsWith(late))).toEqual([]);
  });

  test('loses the files of a deleted account, and the provider stops its videos', async () => {
    const stored = await completed();
    const { id, predictionId } = await asked();
    const remove = () => removeVideosOf(site.database.db, filesOf(), ada.id);
    expect(await remove()).toBe(1);
    expect(await site.files()).not.toContain(stored);
    expect(await store().needsCheck(id)).toBe(true);
    expect(await check(id)).toBe('cancelled');
    await steps().cancel(id, never);
    expect(site.provider.predictions.get(predictionId)?.status).toBe('canceled');
    expect(await store().settle(id, 'late')).toBe('cancelled');
    expect((await failure(id))[2]).toBe('The account is being deleted');
    expect(await remove()).toBe(0);
  });

  test('keeps no file of a video that was cancelled while the file was fetched', async () => {
    const id = await succeeded();
    expect(await store().reserve(id, 10)).toBe(true);
    await removeVideosOf(site.database.db, filesOf(), ada.id);
    const root = site.dependencies.settings.videos.mediaRoot ?? '';
    await writeFile(path.join(root, id), 'a file');
    expect(await store().complete(id, { bytes: 6, contentType: 'video/mp4' })).toBe(false);
    expect(await partsOf(id)).toEqual([]);
    expect(await store().reserve(id, 10)).toBe(false);
  });

  test.each([
    ['by its run', (id: string) => store().settle(id, 'unfetched')],
    [
      'by a step',
      async (id: string) => {
        await store().end(id, 'failed', 'The provider has already deleted the file');
        await store().settle(id);
      },
    ],
    [
      'with its account',
      async (id: string) => {
        await owner(`DELETE FROM videos WHERE id = '${id}'`);
        await store().settle(id);
      },
    ],
  ])('keeps no file of a video that was ended %s after the file was written', async (_, end) => {
    const id = await succeeded();
    await owner(
      `ALTER TABLE videos ADD CONSTRAINT fault CHECK (id <> '${id}' OR status <> 'completed')`,
    );
    await expect(fetchFile(id)).rejects.toThrow('fault');
    await owner('ALTER TABLE videos DROP CONSTRAINT fault');
    expect(await partsOf(id)).toEqual([id]);
    await end(id);
    expect(await partsOf(id)).toEqual([]);
  });

  test('keeps the file of a video that is completed when its run ends', async () => {
    const id = await completed();
    expect(await store().settle(id)).toBe('completed');
    expect(await partsOf(id)).toEqual([id]);
  });
});

describe('the webhook', { tags: 'attack' }, () => {
  test('accepts one of 50 concurrent events with the same id', async () => {
    const { id, predictionId } = await asked();
    const event = { id: predictionId, status: 'succeeded' };
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => site.deliver(event, `msg_of_${id}`)),
    );
    expect(answers.every(({ status }) => status === 200)).toBe(true);
    const handled = answers.filter(({ body }) => body.handled);
    expect(handled).toHaveLength(1);
    const duplicate = { received: true, handled: false, reason: 'duplicate' };
    expect(answers.filter(({ body }) => !body.handled).map(({ body }) => body)).toEqual(
      Array.from({ length: 49 }, () => duplicate),
    );
    expect(await store().needsCheck(id)).toBe(true);
  });

  test('wakes no run for an unknown video, or for one that has ended', async () => {
    const id = await completed();
    const [row] = await owner(`SELECT prediction_id FROM videos WHERE id = '${id}'`);
    for (const prediction of ['unknown', String(row?.prediction_id)]) {
      const { body } = await site.deliver({ id: prediction, status: 'succeeded' });
      expect(body).toEqual({ received: true, handled: false, reason: 'unknown' });
    }
    expect((await site.deliver({ status: 'succeeded' })).body.reason).toBe('event');
    expect((await site.deliver([1])).body.reason).toBe('event');
  });

  test('refuses an event without a valid signature, before anything is stored', async () => {
    const { predictionId } = await asked();
    const event = { id: predictionId, status: 'succeeded' };
    const { body, headers } = site.provider.signed(event);
    const before = await owner('SELECT FROM provider_webhooks');
    for (const wrong of [
      {},
      { ...headers, 'webhook-signature': 'v1,AAAA' },
      { ...headers, 'webhook-timestamp': '1' },
    ]) {
      const sent = { body, headers: { ...wrong, 'content-type': 'application/json' } };
      const refused = await site.web(undefined, 'POST', '/api/webhooks/video', sent);
      expect([refused.status, refused.body.error]).toEqual([400, 'Invalid signature']);
    }
    expect(await owner('SELECT FROM provider_webhooks')).toEqual(before);
  });
});
