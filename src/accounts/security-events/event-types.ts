const RISC = 'https://schemas.openid.net/secevent/risc/event-type';
const OAUTH = 'https://schemas.openid.net/secevent/oauth/event-type';

/** Events that something is done about, by what they are called in the specification. */
export const EVENT_TYPES = {
  'account-disabled': `${RISC}/account-disabled`,
  'account-enabled': `${RISC}/account-enabled`,
  'sessions-revoked': `${RISC}/sessions-revoked`,
  'tokens-revoked': `${OAUTH}/tokens-revoked`,
  'account-credential-change-required': `${RISC}/account-credential-change-required`,
  verification: `${RISC}/verification`,
} as const;

/** Of one token instead of all. Google's addition, which is not announced. */
export const TOKEN_REVOKED = `${OAUTH}/token-revoked`;

/** The types that a sender is told of. */
export const ANNOUNCED_TYPES: readonly string[] = Object.values(EVENT_TYPES);
