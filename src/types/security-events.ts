/** A security event as the identity provider reports it. */
export interface ReportedEvent {
  /** The event's URI. */
  readonly type: string;
  /** The provider's id of the account. */
  readonly sub?: string;
  readonly email?: string;
  readonly reason?: string;
  /** A token, and the way in which the provider identifies it. */
  readonly token?: { readonly by: string; readonly value: string };
}

/** Outcome of an event; `unknown` without an account, `superseded` by a later event, `ignored` type. */
export type EventEffect =
  | 'signed-out'
  | 'disabled'
  | 'enabled'
  | 'token-removed'
  | 'logged'
  | 'acknowledged'
  | 'unknown'
  | 'superseded'
  | 'ignored';

/** Outcome of one event, without personal data. */
export interface EventOutcome {
  /** The event's URI. */
  readonly type: string;
  readonly effect: EventEffect;
}
