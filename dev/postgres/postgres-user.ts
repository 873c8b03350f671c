import { chownSync } from 'node:fs';
import { access, constants, readFile } from 'node:fs/promises';
import path from 'node:path';
import { StartFailure } from '../failure.js';
import { say } from '../report.js';
import { exitCodeOf, run } from '../processes/run.js';

const TIMEOUT = { timeout: 10_000 };

/** Capabilities as bits (linux/capability.h). */
const DAC_OVERRIDE = 1n << 1n;
const DAC_READ_SEARCH = 1n << 2n;
const SETPCAP = 1n << 8n;

/** The way to run PostgreSQL's programs, which refuse to run as root. */
export interface PostgresUser {
  /** Changes the owner of a file or folder to the user that PostgreSQL runs as. */
  own(file: string): void;
  /** Returns the command line to spawn, and the ids to spawn it with. */
  command(
    program: string,
    args: readonly string[],
  ): {
    command: string;
    args: readonly string[];
    uid?: number;
    gid?: number;
  };
}

/**
 * Returns the caller, or for root a system user `postgres`, which is created if missing.
 *
 * @param places files that PostgreSQL must be able to reach.
 */
export async function postgresUser(places: readonly string[]): Promise<PostgresUser> {
  if (process.getuid?.() !== 0) {
    return { own: () => undefined, command: (command, args) => ({ command, args }) };
  }
  const { uid, gid } = (await findUser()) ?? (await makeUser());
  const own = (file: string) => chownSync(file, uid, gid);
  if (await canReach(places, uid, gid)) {
    return { own, command: (command, args) => ({ command, args, uid, gid }) };
  }
  // For a clone in /root, which is closed to others: PostgreSQL gets only the capability to traverse
  // folders.
  const right = await rightToPass(places[0] ?? '');
  const grant = [`--reuid=${uid}`, `--regid=${gid}`, '--clear-groups'];
  // PostgreSQL's programs check each other with access(2), which ignores the capabilities of users other
  // than root.
  grant.push('--securebits=+no_setuid_fixup');
  grant.push(
    `--inh-caps=-all,+${right}`,
    `--ambient-caps=-all,+${right}`,
    `--bounding-set=-all,+${right}`,
  );
  return {
    own,
    command: (program, args) => ({ command: 'setpriv', args: [...grant, program, ...args] }),
  };
}

async function findUser(): Promise<{ uid: number; gid: number } | undefined> {
  try {
    const [uid, gid] = await Promise.all([
      run('id', ['-u', 'postgres'], TIMEOUT),
      run('id', ['-g', 'postgres'], TIMEOUT),
    ]);
    return { uid: Number(uid), gid: Number(gid) };
  } catch (error) {
    if (exitCodeOf(error) === 1) return undefined; // No such user.
    throw error;
  }
}

async function makeUser(): Promise<{ uid: number; gid: number }> {
  say('PostgreSQL refuses to run as root: creating the system user "postgres" for it.');
  try {
    await run('useradd', ['--system', '--user-group', '--no-create-home', 'postgres'], TIMEOUT);
  } catch (cause) {
    throw new StartFailure(
      'The user "postgres" could not be created: start as a user other than root.',
      {
        cause,
      },
    );
  }
  const user = await findUser();
  if (user === undefined)
    throw new StartFailure(
      'The user "postgres" could not be created: start as a user other than root.',
    );
  return user;
}

async function canReach(places: readonly string[], uid: number, gid: number): Promise<boolean> {
  const folders = places.map((place) => path.dirname(path.resolve(place)));
  try {
    for (const folder of folders)
      await run('test', ['-x', folder], { uid, gid, cwd: '/', ...TIMEOUT });
    return true;
  } catch (error) {
    if (exitCodeOf(error) === 1) return false;
    throw error;
  }
}

/** Returns a capability to traverse folders: containers may lack the narrow one but have the wider one. */
async function rightToPass(place: string): Promise<'dac_read_search' | 'dac_override'> {
  const unreachable = `The user "postgres" cannot reach ${place}: clone to a folder that is open to it, such as /srv, or start as another user than root.`;
  const setpriv = (process.env.PATH ?? '').split(':').map((folder) => path.join(folder, 'setpriv'));
  const found = await Promise.all(
    setpriv.map((file) =>
      access(file, constants.X_OK).then(
        () => true,
        () => false,
      ),
    ),
  );
  if (!found.includes(true)) throw new StartFailure(unreachable);
  const bounds = /^CapBnd:\s*([0-9a-f]+)$/m.exec(await readFile('/proc/self/status', 'utf8'));
  const bits = BigInt(`0x${bounds?.[1] ?? '0'}`);
  const maySetBits = (bits & SETPCAP) !== 0n;
  if (maySetBits && bits & DAC_READ_SEARCH) return 'dac_read_search';
  if (maySetBits && bits & DAC_OVERRIDE) return 'dac_override';
  throw new StartFailure(unreachable);
}
