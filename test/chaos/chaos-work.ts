// Kills parts of the platform while it works for an owner: scheduled tasks, swarms, skills, verifications, videos,
// e-mails and the radio.
import { randomBytes, randomUUID } from 'node:crypto';
import { parseArgs } from 'node:util';
import { runBenchmark } from '../../bench/support/cleanups.js';
import { Client } from '../../bench/support/client.js';
import { enterOwnNetwork } from '../../bench/support/own-network.js';
import type { BenchPlatform } from '../../bench/support/platform.js';
import { StartFailure } from '../../dev/failure.js';
import { makeFolder } from '../../bench/support/folder.js';
import { ResendStandIn } from '../../dev/email/resend-stand-in.js';
import { poll } from '../../dev/poll.js';
import { obtainIcecast } from '../../dev/radio/icecast.js';
import { obtainFfmpeg } from '../../dev/test-programs.js';
import { startVideoProvider } from '../../dev/video/video-provider.js';
import { PATH_USD } from '../../src/money/chain/tempo.js';
import { WALLET_ISSUER } from '../../src/types/sign-in-methods.js';
import { openAgentsSite } from './agents-site.js';
import { CarefulClient } from './careful-client.js';
import type { Site } from './site.js';
import { planWork, WORK_KINDS } from './work-plan.js';
import { runWork, type WorkResult } from './work-round.js';
import type { WorkSite } from './work.js';

/** Milliseconds until an agent of the test image runs. */
const RUNNING_MS = 60_000;

/** Milliseconds until a video of the stand-in is ready, and for its file. */
const VIDEO_MS = 1_500;

const { values: options } = parseArgs({
  options: {
    /** 20 of each kind: an owner has no more videos a day. */
    rounds: { type: 'string', default: String(20 * WORK_KINDS.length) },
    /** Kinds of work, such as `video,radio`. */
    kinds: { type: 'string', default: WORK_KINDS.join() },
    /** The first round's seed; each next round adds one. */
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
  },
});
const firstSeed = Number(options.seed);
const wanted = options.kinds.split(',');
const kinds = WORK_KINDS.filter((kind) => wanted.includes(kind));
if (kinds.length < wanted.length) throw new Error(`--kinds= takes ${WORK_KINDS.join()}`);
const plans = Array.from({ length: Number(options.rounds) }, (_, n) =>
  planWork(firstSeed + n, kinds),
);

// No program can be installed in a network of its own.
await obtainIcecast({ manage: true });
const ffmpeg = await obtainFfmpeg();
if (ffmpeg === undefined) throw new StartFailure('ffmpeg is missing: install the package ffmpeg');
await enterOwnNetwork();
await runBenchmark(async (atEnd) => {
  const mediaRoot = await makeFolder(atEnd);
  const adminPassword = randomBytes(24).toString('hex');
  const videos = await startVideoProvider({ workMs: VIDEO_MS });
  atEnd(() => videos.close());
  videos.faults = { file: 'slow' };
  const resend = await ResendStandIn.open();
  atEnd(() => resend.close());
  const { platform, site } = await openAgentsSite(atEnd, {
    ...videos.env,
    ...resend.env,
    MEDIA_ROOT: mediaRoot,
    PLATFORM_TOKEN_ADDRESS: PATH_USD,
    RADIO_ADMIN_PASSWORD: adminPassword,
  });
  const owned: WorkSite = {
    ...site,
    ...(await makeOwner(site, platform)),
    webUrl: platform.webUrl,
    videos,
    mediaRoot,
    resend,
    radio: { ffmpeg, adminPassword },
  };
  console.log(`${plans.length} rounds from seed ${firstSeed}`);
  const results: WorkResult[] = [];
  for (const plan of plans) {
    const result = await runWork(owned, plan);
    results.push(result);
    print(result);
  }
  conclude(results);
});

/** Registers a user with a verified address, a wallet that holds the platform's token, and two running agents. */
async function makeOwner(
  site: Site,
  platform: BenchPlatform,
): Promise<Pick<WorkSite, 'agents' | 'email' | 'owner'>> {
  const web = new Client(platform.webUrl, {});
  const email = 'chaos@example.org';
  const login = { email, password: randomUUID() };
  const { id: userId } = await web.json<{ id: string }>('POST', '/api/register', login);
  const plan = { userId, plan: 'solo' };
  await site.api.ask('POST', '/api/subscriptions/deploy', 'plan', plan);
  const { headers } = await web.send('POST', '/api/auth/login', login);
  web.close();
  const signedIn = new Client(platform.webUrl, {
    cookie: headers['set-cookie']?.[0]?.split(';')[0] ?? '',
  });
  const { key } = await signedIn.json<{ key: string }>('POST', '/api/keys', { name: 'chaos' });
  signedIn.close();
  await prove(site, platform, userId);
  const owner = new CarefulClient(platform.webUrl, key);
  const agents: string[] = [];
  for (const name of ['first', 'second']) agents.push(await runningAgent(owner, name));
  return { owner, email, agents };
}

/** Stores what the platform cannot prove without other services: the user's address, and a wallet. */
async function prove({ database }: Site, { chain }: BenchPlatform, userId: string): Promise<void> {
  await database
    .asPlatform()
    .query('UPDATE users SET email_verified_at = now() WHERE id = $userId', { userId });
  const subject = chain.accounts[0]?.address.toLowerCase() ?? '';
  await database.asUser(userId).transaction((db) =>
    db.Identity.create({
      ...{ id: randomUUID(), userId, kind: 'wallet', issuer: WALLET_ISSUER },
      ...{ subject, label: subject },
    }),
  );
}

async function runningAgent(owner: CarefulClient, name: string): Promise<string> {
  interface Found {
    readonly agent: { readonly id: string; readonly status: string };
  }
  const { agent } = await owner.ask<Found>('POST', '/api/agents/provision', name, { name });
  const runs = async () => {
    const found = await owner.ask<Found>('GET', `/api/agents/${agent.id}`, '');
    return found.agent.status === 'running' || undefined;
  };
  if (!(await poll(runs, { timeoutMs: RUNNING_MS, everyMs: 500 }))) {
    throw new Error(`The agent ${name} does not run`);
  }
  return agent.id;
}

function print({ ended, plan, problems }: WorkResult): void {
  const { killAfterMs, kind, part, seed } = plan;
  const how = problems.length > 0 ? 'WRONG' : 'well';
  console.log(`seed ${seed}: ${kind}, ${part} after ${killAfterMs} ms (${ended}): ${how}`);
  for (const problem of problems) console.log(`  ${problem}`);
}

/** Prints the summary. @throws Error if there is a problem. */
function conclude(results: readonly WorkResult[]): void {
  const counts = kinds.map(
    (kind) => `${kind} ${results.filter(({ plan }) => plan.kind === kind).length}`,
  );
  const wrong = results.filter(({ problems }) => problems.length > 0);
  console.log(`${results.length} rounds: ${counts.join(', ')}; wrong ${wrong.length}`);
  if (wrong.length === 0) return;
  const seeds = wrong.map(({ plan }) => plan.seed).join(' ');
  const again = `--rounds=1 --kinds=${kinds.join()} --seed=`;
  throw new Error(`Problems found; repeat a seed with ${again}: ${seeds}`);
}
