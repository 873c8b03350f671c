import { randomBytes } from 'node:crypto';
import { tokenHash } from '../../platform/secrets/token-hash.js';

/** Prefix of every id. */
const PREFIX = 'ses_';

const TOKEN_BYTES = 32;

/** Characters at the end of an id that are shown to clients other than its owner. */
const SHOWN = 4;

/**
 * Creates the id of a payment session, a secret that allows its holder to debit. Logs, metrics, workflows
 * and the ledger use the id of the row instead.
 */
export const newSessionToken = (): string =>
  `${PREFIX}${randomBytes(TOKEN_BYTES).toString('base64url')}`;

/** Reports whether a text has the form of a session id. */
export const isSessionToken = (text: string): boolean => /^ses_[\w-]{43}$/.test(text);

/** Returns the context that binds a sealed id to its session's row. */
export const sessionTokenContext = (rowId: string): string => `payment-session/${rowId}`;

/** Returns the columns stored for an id: its hash and its unencrypted end. */
export const storedOf = (token: string) => ({
  tokenHash: tokenHash(token),
  tokenEnd: token.slice(-SHOWN),
});

/** Returns the public form of an id. */
export const maskedId = ({ tokenEnd }: { readonly tokenEnd: string }): string =>
  `${PREFIX}…${tokenEnd}`;
