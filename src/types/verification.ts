/** The checks of a verification, in their order. */
export const CHECK_NAMES = ['container', 'profile', 'configuration', 'gateway'] as const;

export type CheckName = (typeof CHECK_NAMES)[number];

/** A part of a measurement, with its evidence. */
export interface Check {
  readonly name: CheckName;
  readonly ok: boolean;
  /** Evidence, or the differences found; no secret. */
  readonly detail: string;
}

export interface Measured {
  readonly checks: readonly Check[];
  /** Id of the image that the agent's container has; empty without a container. */
  readonly image: string;
}

export type VerificationState =
  | 'measuring'
  | 'signing'
  | 'current'
  | 'past'
  | 'cancelled'
  | 'failed';
