import { randomBytes } from 'node:crypto';
import { tokenHash } from '../../platform/secrets/token-hash.js';

/** What an id begins with. */
const PREFIX = 'ses_';

const TOKEN_BYTES = 32;

/** How much of an id is shown to those whose it is not. */
const SHOWN = 4;

/**
 * The id of a payment session, by which whoever has it debits: a secret. Logs, metrics, workflows and the
 * ledger name the session's row instead.
 */
export const newSessionToken = (): string =>
  `${PREFIX}${randomBytes(TOKEN_BYTES).toString('base64url')}`;

/** Whether it has the form of one. */
export const isSessionToken = (text: string): boolean => /^ses_[\w-]{43}$/.test(text);

/** Binds a sealed id to the row of its session. */
export const sessionTokenContext = (rowId: string): string => `payment-session/${rowId}`;

/** What a row stores of an id in the clear. */
export const storedOf = (token: string) => ({
  tokenHash: tokenHash(token),
  tokenEnd: token.slice(-SHOWN),
});

/** What everybody may see of an id. */
export const maskedId = ({ tokenEnd }: { readonly tokenEnd: string }): string =>
  `${PREFIX}…${tokenEnd}`;
