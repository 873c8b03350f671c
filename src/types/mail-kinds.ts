/** The kinds of mail. Kinds with a link contain a token. */
export type MailKind =
  /** With a link that confirms an account's address. */
  | 'verify-email'
  /** With a link that confirms the new address requested by an account's owner. */
  | 'change-email'
  /** With a link for setting a new password. */
  | 'reset-password'
  /** A notice to the account's address: its owner has requested a change of address. */
  | 'email-change-asked'
  /** A notice to the former address: the account now has another one. */
  | 'email-changed'
  /** A notice to the account's address: its password was reset. */
  | 'password-was-reset'
  /** A notice to owners of keys that were made before keys had scopes. */
  | 'keys-got-scopes'
  /** Notices to the account's verified address. */
  | 'key-added'
  | 'sign-in-added'
  | 'sign-in-removed'
  /** A notice to the account's verified address: messages for an agent could not be delivered. */
  | 'bus-dead-letters'
  /** A notice to the account's verified address: its paid plan has ended. */
  | 'plan-ended';

export type MailTokenKind = 'verify-email' | 'reset-password';
