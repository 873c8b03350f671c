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
