import { DatabaseError } from 'sequelize';
import type { Logger } from 'pino';
import { jittered } from '../../lib/jitter.js';
import { pause } from '../../lib/pause.js';
import type { Database } from './database.js';
import { isDatabaseAway } from './database-away.js';
import { MIGRATIONS } from './migrations/index.js';

/** A database that must not serve this process. The message is one sentence that says what to do. */
export class UnfitDatabaseError extends Error {
  override readonly name = 'UnfitDatabaseError';
}

const PAUSE_MS = 2_000;

/**
 * Checks role and schema before a process serves. Waits for a database that does not answer, or that is being
 * migrated. @returns false if the signal aborts first. @throws UnfitDatabaseError
 */
export async function requireFitDatabase(
  database: Pick<Database, 'call'>,
  log: Logger,
  signal: AbortSignal,
): Promise<boolean> {
  while (!signal.aborted) {
    try {
      await checkRole(database);
      const newer = await checkSchema(database);
      if (newer.length > 0) log.warn({ newer }, 'the schema is of a newer release');
      return true;
    } catch (error) {
      if (!isAway(error)) throw error;
      log.warn({ reason: error.message }, 'the database does not answer; retrying');
      await pause(jittered(PAUSE_MS), signal);
    }
  }
  return false;
}

/** SQLSTATE of a table that a migration locks. */
const LOCK_NOT_AVAILABLE = '55P03';

const isAway = (error: unknown): error is Error =>
  isDatabaseAway(error) ||
  (error instanceof DatabaseError &&
    'code' in error.parent &&
    error.parent.code === LOCK_NOT_AVAILABLE);

interface Role {
  readonly name: string;
  readonly isSuperuser: boolean;
  readonly bypasses: boolean;
  readonly owns: boolean;
  readonly rowSecurity: string;
}

const ROLE = `
  SELECT rolname AS name,
         EXISTS (SELECT FROM pg_roles WHERE rolsuper AND pg_has_role(current_user, oid, 'MEMBER'))
           AS "isSuperuser",
         EXISTS (SELECT FROM pg_roles WHERE rolbypassrls AND pg_has_role(current_user, oid, 'MEMBER'))
           AS bypasses,
         current_setting('row_security') AS "rowSecurity",
         EXISTS (SELECT FROM pg_class
                  WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
                    AND pg_has_role(current_user, relowner, 'MEMBER')) AS owns
    FROM pg_roles WHERE rolname = current_user`;

/** Checks that the role cannot see other tenants' rows. @throws UnfitDatabaseError */
export async function checkRole(database: Pick<Database, 'call'>): Promise<void> {
  const [role] = await database.call<Role>({ text: ROLE }, []);
  const fault = role && faultOf(role);
  if (fault === undefined) return;
  throw new UnfitDatabaseError(
    `The role "${role?.name}" of DATABASE_URL ${fault}, so tenants would not be isolated: name a role ` +
      'without SUPERUSER and BYPASSRLS that owns no tables',
  );
}

function faultOf({ bypasses, isSuperuser, owns, rowSecurity }: Role): string | undefined {
  if (isSuperuser) return 'is a superuser or a member of one';
  if (bypasses) return 'bypasses row-level security, or is a member of a role that does';
  if (owns) return 'owns the tables';
  if (rowSecurity !== 'on') return 'has row_security off';
  return undefined;
}

interface Applied {
  readonly name: string;
  readonly breaksOlder: boolean;
}

const HOW = 'run dist/scripts/migrate.js with DATABASE_OWNER_URL, then start again';

/** Compares the schema with this release. @returns migrations of a newer release. @throws UnfitDatabaseError */
export async function checkSchema(database: Pick<Database, 'call'>): Promise<readonly string[]> {
  const applied = await appliedMigrations(database);
  if (applied === undefined) {
    throw new UnfitDatabaseError(`The database has no schema of this release: ${HOW}`);
  }
  const names = new Set(applied.map(({ name }) => name));
  const [missing] = MIGRATIONS.filter(({ name }) => !names.has(name));
  if (missing) {
    throw new UnfitDatabaseError(`The database lacks the migration ${missing.name}: ${HOW}`);
  }
  const known = new Set(MIGRATIONS.map(({ name }) => name));
  const newer = applied.filter(({ name }) => !known.has(name));
  const breaking = newer.find(({ breaksOlder }) => breaksOlder);
  if (breaking) {
    throw new UnfitDatabaseError(
      `The database has the migration ${breaking.name} of a newer release, with which this release cannot ` +
        'work: start the newer release',
    );
  }
  return newer.map(({ name }) => name);
}

/** Returns the migrations of the database; undefined if it has none that this role may read. */
async function appliedMigrations(
  database: Pick<Database, 'call'>,
): Promise<readonly Applied[] | undefined> {
  const readable = `SELECT coalesce(has_table_privilege(to_regclass('schema_migrations'), 'SELECT'), false) AS readable`;
  const [found] = await database.call<{ readable: boolean }>({ text: readable }, []);
  if (!found?.readable) return undefined;
  return database.call<Applied>(
    { text: 'SELECT name, breaks_older AS "breaksOlder" FROM schema_migrations ORDER BY name' },
    [],
  );
}
