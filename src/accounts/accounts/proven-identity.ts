import { ForbiddenError } from '../../lib/errors.js';
import type { IdentityKind, ProviderKind } from '../../types/sign-in-methods.js';

/** An identity that a third party vouches for. */
export interface ProvenIdentity {
  readonly kind: IdentityKind;
  /** The address of the provider that vouches, or `eip155`. */
  readonly issuer: string;
  /** The issuer's permanent id for the user, never an address or a login name, which could be reassigned. */
  readonly subject: string;
  /** The name users recognize: an email or a login name. */
  readonly label: string;
  /** Token for acting on the user's behalf at the provider. */
  readonly refreshToken?: string | undefined;
}

/** A user signing in by an identity, possibly without an account yet. */
export interface Applicant extends ProvenIdentity {
  readonly kind: ProviderKind;
  /** The address as received, not normalized. */
  readonly email: string | undefined;
  readonly emailVerified: boolean;
  /** The name for a new account, if it is acceptable. */
  readonly name?: string | undefined;
}

export type SignInFailure =
  /** No proof arrived: refused at the provider, or not begun in this browser. */
  | 'AuthFailed'
  /** The code, or the token it was exchanged for, is invalid. */
  | 'TokenFailed'
  /** The identity has no account and no verified address. */
  | 'NoEmail'
  /** The address is not sufficient proof that its account belongs to the user. */
  | 'LinkRefused'
  /** A security event reports that the identity is compromised. */
  | 'SignInDisabled';

/** 403: sign-in by an external identity refused. */
export class IdentityRefusedError extends ForbiddenError {
  override readonly name = 'IdentityRefusedError';

  constructor(
    readonly failure: SignInFailure,
    options?: ErrorOptions,
  ) {
    super(`Sign-in refused: ${failure}`);
    this.cause = options?.cause;
  }
}
