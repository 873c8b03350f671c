import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run } from '../processes/run.js';
import { stopping } from '../processes/stopping.js';

/** The user whose subordinate ids Docker gives to containers, by its own name for it. */
const USER = 'dockremap';

/** As many ids as Docker itself takes, from the same one on. */
const FIRST_ID = 100_000;
const IDS = 65_536;

/** The programs wait for each other's locks, for seconds, and then fail. */
const TIMEOUT_MS = 60_000;
const TRIES = 20;
const PAUSE_MS = 1_000;

type Command = readonly [program: string, ...args: string[]];

interface Options {
  /** Where users are written down. */
  readonly etc?: string;
  readonly pauseMs?: number;
}

/**
 * Makes the user and its ids where there are none. Docker would, with its start: of two engines that start
 * at a time one then finds the user half made, and does not start.
 *
 * @throws what `useradd` or `usermod` failed with, each time.
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
      // Somebody else may be at it, and have done it when it is looked at again.
      if (++failures === TRIES) throw error;
      await sleep(pauseMs, undefined, { signal: stopping.signal });
    }
  }
}

/** What is to be run for the next thing that is missing; undefined when all is there. */
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

/** The first id after each range of a file such as `/etc/subuid`. */
function endsOfRanges(file = ''): number[] {
  return file
    .split('\n')
    .map((line) => line.split(':'))
    .filter(([name, start, count]) => name !== USER && Boolean(start) && Boolean(count))
    .map(([, start, count]) => Number(start) + Number(count));
}
