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

/**
 * What became of an event: `unknown` is of nobody here, `superseded` of something that has been
 * contradicted since, `ignored` of a kind that nothing is done about.
 */
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

/** What became of one event; names nobody. */
export interface EventOutcome {
  /** The event's URI. */
  readonly type: string;
  readonly effect: EventEffect;
}
