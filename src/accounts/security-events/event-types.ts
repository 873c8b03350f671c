const RISC = 'https://schemas.openid.net/secevent/risc/event-type';
const OAUTH = 'https://schemas.openid.net/secevent/oauth/event-type';

/** Supported events by their names in the specification. */
export const EVENT_TYPES = {
  'account-disabled': `${RISC}/account-disabled`,
  'account-enabled': `${RISC}/account-enabled`,
  'sessions-revoked': `${RISC}/sessions-revoked`,
  'tokens-revoked': `${OAUTH}/tokens-revoked`,
  'account-credential-change-required': `${RISC}/account-credential-change-required`,
  verification: `${RISC}/verification`,
} as const;

/** Revocation of a single token: an addition by Google, which is not announced to senders. */
export const TOKEN_REVOKED = `${OAUTH}/token-revoked`;

export const ANNOUNCED_TYPES: readonly string[] = Object.values(EVENT_TYPES);
