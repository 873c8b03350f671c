import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../processes/run.js';
import { stopping } from '../processes/stopping.js';

/** The user whose subordinate ids Docker assigns to containers, under Docker's own name for it. */
const USER = 'dockremap';

/** First and number of ids, the same as Docker's own defaults. */
const FIRST_ID = 100_000;
const IDS = 65_536;

/** Time limits and attempts: the programs wait seconds for each other's locks, and then fail. */
const TIMEOUT_MS = 60_000;
const TRIES = 20;
const PAUSE_MS = 1_000;

type Command = readonly [program: string, ...args: string[]];

interface Options {
  /** Folder of the user database. */
  readonly etc?: string;
  readonly pauseMs?: number;
}

/**
 * Makes the user and its ids if missing. Docker would do so at its start, but if two engines start at the
 * same time, one of them finds an incomplete user and does not start.
 *
 * @throws the failure of `useradd` or `usermod`, if every attempt fails.
 */
export async function ensureRemappedUser({
  etc = '/etc',
  pauseMs = PAUSE_MS,
}: Options = {}): Promise<void> {
  for (let failures = 0; ;) {
    const missing = await nextStep(etc);
    if (!missing) return;
    const [program, ...args] = missing;
    try {
      await run(program, args, { timeout: TIMEOUT_MS });
    } catch (error) {
      // Another process may be making the user, and be done at the next check.
      if (++failures === TRIES) throw error;
      await sleep(pauseMs, undefined, { signal: stopping.signal });
    }
  }
}

/** Returns the command that makes the next missing part; undefined when all is complete. */
async function nextStep(etc: string): Promise<Command | undefined> {
  const read = (name: string) => readFile(path.join(etc, name), 'utf8').catch(() => '');
  const [users, uids, gids] = await Promise.all(['passwd', 'subuid', 'subgid'].map(read));
  if (!names(users)) {
    const options = ['--system', '--user-group', '--no-create-home', '--shell', '/bin/false'];
    return ['useradd', ...options, USER];
  }
  const first = Math.max(FIRST_ID, ...[uids, gids].flatMap(endsOfRanges));
  const range = `${first}-${first + IDS - 1}`;
  if (!names(uids)) return ['usermod', '--add-subuids', range, USER];
  if (!names(gids)) return ['usermod', '--add-subgids', range, USER];
  return undefined;
}

const names = (file = '') => file.split('\n').some((line) => line.startsWith(`${USER}:`));

/** Returns the first id after each range of a file such as `/etc/subuid`. */
function endsOfRanges(file = ''): number[] {
  return file
    .split('\n')
    .map((line) => line.split(':'))
    .filter(([name, start, count]) => name !== USER && Boolean(start) && Boolean(count))
    .map(([, start, count]) => Number(start) + Number(count));
}
