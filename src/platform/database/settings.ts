import { area, variable } from '../environment/area.js';
import { isSilentlyPlain } from './plain-address.js';
import { url } from '../environment/types.js';

const anyAddress = url('postgres', 'postgresql');

const address = (production: boolean) =>
  production
    ? anyAddress.refine((value) => !isSilentlyPlain(value), {
        error:
          'must say sslmode=verify-full where it leaves this machine in production, or sslmode=disable ' +
          'if the network is trusted',
      })
    : anyAddress;

export const databaseSettings = area('PostgreSQL', ({ production }) => ({
  url: variable(
    'DATABASE_URL',
    address(production),
    'the role that serves requests; `npm start` runs a database of its own',
    { secret: true },
  ),
}));

/** Settings for migrations only: serving processes do not have them. */
export const migrationSettings = area('Migrations', ({ production }) => ({
  ownerUrl: variable(
    'DATABASE_OWNER_URL',
    address(production).optional(),
    'the role that owns the tables; `scripts/migrate.js` alone may have it',
    { secret: true },
  ),
}));
