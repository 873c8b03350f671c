import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startVideoProvider, type VideoProviderStandIn } from '../../dev/video/video-provider.js';
import { createWorkerServices, type WorkerServices } from '../../src/services.js';
import type { Plan } from '../../src/types/plans.js';
import { send } from '../support/http.js';
import { walletSite, type Person, type WalletSite } from '../money/wallets/support.js';

export const PATH = '/api/generate-video';

/** Milliseconds after which predictions of the stand-in end, unless a test ends them. */
const LONG_MS = 10 * 60_000;

export interface VideoSite extends WalletSite {
  readonly provider: VideoProviderStandIn;
  readonly services: WorkerServices;
  /** Creates a user with a plan. */
  customer(plan?: Plan): Promise<Person>;
  /** Requests a video. @returns its id. */
  create(person: Person, body?: object): Promise<string>;
  /** Returns a video as shown to its owner. */
  get(person: Person, id: string): Promise<ShownVideo>;
  /** Delivers an event to the webhook. */
  deliver(event: object, id?: string): ReturnType<WalletSite['web']>;
  /** Requests a path of the web API, for an answer that is no text. */
  raw(path: string, headers: Readonly<Record<string, string>>): Promise<Response>;
  /** Lists the files in the folder of media. */
  files(): Promise<string[]>;
}

export interface ShownVideo {
  readonly status: string;
  readonly url: string | null;
  readonly size: number | null;
  readonly contentType: string | null;
  readonly error: string | null;
}

/** Starts the API and a stand-in of the provider, with the steps of a worker. */
export async function videoSite(env: Readonly<Record<string, string>> = {}): Promise<VideoSite> {
  const provider = await startVideoProvider({ workMs: LONG_MS });
  // Reports would go to the address of WEB_URL, where no listener of the test is.
  provider.reports = false;
  const media = await mkdtemp(path.join(tmpdir(), 'aps-media-'));
  const site = await walletSite({ ...provider.env, MEDIA_ROOT: media, ...env });
  const { log, settings } = site.dependencies;
  const services = createWorkerServices({ database: site.database.db, log, settings });
  return {
    ...site,
    provider,
    services,
    async customer(plan = 'solo') {
      const person = await site.person();
      const body = { userId: person.id, plan };
      await site.backend(undefined, 'POST', '/api/subscriptions/deploy', { body });
      return person;
    },
    async create(person, body = {}) {
      const made = await site.web(person, 'POST', PATH, { body: { prompt: 'A sunrise', ...body } });
      if (made.status !== 202) throw new Error(`${made.status}: ${made.text}`);
      return made.body.video.id as string;
    },
    get: async (person, id) => (await site.web(person, 'GET', `${PATH}?id=${id}`)).body.video,
    deliver: (event, id) =>
      site.web(undefined, 'POST', '/api/webhooks/video', provider.signed(event, id)),
    raw: (asked, headers) => send(site.webUrl, 'GET', asked, { headers }),
    files: () => readdir(media),
    async close() {
      await site.close();
      await provider.close();
      await rm(media, { recursive: true });
    },
  };
}
