import { ForbiddenError } from '../../lib/errors.js';
import type { IdentityKind, ProviderKind } from '../../types/sign-in-methods.js';

/** Who somebody is, as others vouch for it. */
export interface ProvenIdentity {
  readonly kind: IdentityKind;
  /** Who vouches: the address of a provider, or `eip155`. */
  readonly issuer: string;
  /** What the issuer never gives to another: never an address or a login name. */
  readonly subject: string;
  /** What people know it by: an email, a login name. */
  readonly label: string;
  /** By which we go on acting for them there. */
  readonly refreshToken?: string | undefined;
}

/** Somebody who wants to sign in by it, and may have no account yet. */
export interface Applicant extends ProvenIdentity {
  readonly kind: ProviderKind;
  /** As it came. */
  readonly email: string | undefined;
  /** By those who vouch. */
  readonly emailVerified: boolean;
  /** What a new account is called, where it can be. */
  readonly name?: string | undefined;
}

/** Why somebody is not signed in by what others vouch for. */
export type SignInFailure =
  /** Nothing came that proves anything: refused there, or not begun in this browser. */
  | 'AuthFailed'
  /** What came is not good: the code, or the token that it was exchanged for. */
  | 'TokenFailed'
  /** No address that is known to be theirs, and no account. */
  | 'NoEmail'
  /** It is not shown well enough that the account of that address is theirs. */
  | 'LinkRefused'
  /** A security event says that the identity is in the wrong hands. */
  | 'SignInDisabled';

/** 403: not signed in by what others vouch for. */
export class IdentityRefusedError extends ForbiddenError {
  constructor(
    readonly failure: SignInFailure,
    options?: ErrorOptions,
  ) {
    super(`Sign-in refused: ${failure}`);
    this.cause = options?.cause;
  }
}
