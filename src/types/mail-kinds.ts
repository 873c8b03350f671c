/** What mails say. Those with a link carry a token. */
export type MailKind =
  /** With a link: the address of an account is its owner's. */
  | 'verify-email'
  /** With a link: the address that an account's owner wants to change to is theirs. */
  | 'change-email'
  /** With a link: a new password for the account of an address. */
  | 'reset-password'
  /** To an account's address: its owner wants to change to another one. */
  | 'email-change-asked'
  /** To an account's former address: it is another one now. */
  | 'email-changed'
  /** To an account's address: its password was reset. */
  | 'password-was-reset';

/** What a token out of a mail is good for. */
export type MailTokenKind = 'verify-email' | 'reset-password';
