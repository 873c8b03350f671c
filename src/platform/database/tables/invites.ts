import { literal } from 'sequelize';
import { PLATFORM } from '../schema/policies.js';
import { index, integer, key, table, text, timestamp, withDefault } from '../schema/table.js';

/** Codes that invite new users. */
export const inviteCodes = table(
  'invite_codes',
  {
    /** Digest of the code, which is stored nowhere. */
    id: key(text()),
    /** Uses that are left. */
    remaining: integer(),
    expiresAt: timestamp(),
    createdAt: withDefault(timestamp(), literal('now()')),
  },
  [index('invite_codes_expires', ['expires_at'])],
  PLATFORM,
);
