import { randomBytes } from 'node:crypto';
import type { SignInSecrets } from '../../src/accounts/accounts/sign-in-provider.js';
import type { ProviderKind } from '../../src/types/sign-in-methods.js';
import { SecretUnreadableError, type SecretBox } from '../../src/platform/secrets/secret-box.js';
import { tokenHash } from '../../src/platform/secrets/token-hash.js';

/** How long somebody may take at a provider. */
const FLOW_SECONDS = 10 * 60;

/** Flows that one browser has at a time: what a request carries has an end. */
const MAX_FLOWS = 5;

const RANDOM_BYTES = 32;

/** A sign-in that was begun, as the browser keeps it until the provider sends it back. */
export interface ProviderFlow extends SignInSecrets {
  /** Milliseconds since 1970, after which it is over. */
  readonly until: number;
  /** The session whose account is to be linked; without one somebody signs in. */
  readonly link?: { readonly userId: string; readonly sessionId: string };
}

/**
 * Sign-ins under way at one provider. Each is in a cookie of its own, sealed, so that two tabs both
 * work, nothing is stored for visitors, and an answer is taken from the browser alone that asked.
 */
export class ProviderFlows {
  readonly #context: string;
  readonly #prefix: string;
  readonly #secrets: SecretBox;
  readonly #secure: boolean;

  /** @param secure false only where HTTP is plain. */
  constructor(kind: ProviderKind, secrets: SecretBox, secure: boolean) {
    this.#context = `sign-in-flow:${kind}`;
    // With that prefix, browsers let no neighbouring host set one.
    this.#prefix = `${secure ? '__Host-' : ''}sign-in-${kind}-`;
    this.#secrets = secrets;
    this.#secure = secure;
  }

  begin(link?: ProviderFlow['link']): ProviderFlow {
    const random = () => randomBytes(RANDOM_BYTES).toString('base64url');
    return {
      state: random(),
      nonce: random(),
      verifier: random(),
      until: Date.now() + FLOW_SECONDS * 1000,
      ...(link && { link }),
    };
  }

  /** The `Set-Cookie` values that keep a flow, and forget the oldest when there are too many. */
  keep(flow: ProviderFlow, cookies: string | undefined): string[] {
    const begun = this.#cookies(cookies).slice(0, 1 - MAX_FLOWS);
    const sealed = this.#secrets.seal(JSON.stringify(flow), this.#context);
    return [
      ...new Set(begun.map(([name]) => this.#serialize(name, '', 0))),
      this.#serialize(this.#nameOf(flow.state), sealed, FLOW_SECONDS),
    ];
  }

  /** The flow of that state, if this browser has begun it. Two cookies of its name are none. */
  find(state: string, cookies: string | undefined): ProviderFlow | undefined {
    const name = this.#nameOf(state);
    const [found, ...more] = this.#cookies(cookies).filter((each) => each[0] === name);
    if (found === undefined || more.length > 0) return undefined;
    const flow = this.#open(found[1]);
    return flow?.state === state && flow.until > Date.now() ? flow : undefined;
  }

  /** The `Set-Cookie` value that ends a flow. */
  end(state: string): string {
    return this.#serialize(this.#nameOf(state), '', 0);
  }

  #open(sealed: string): ProviderFlow | undefined {
    try {
      // Nobody else seals in this context.
      return JSON.parse(this.#secrets.open(sealed, this.#context)) as ProviderFlow;
    } catch (error) {
      if (error instanceof SecretUnreadableError) return undefined;
      throw error;
    }
  }

  #nameOf(state: string): string {
    return this.#prefix + tokenHash(state).slice(0, 16);
  }

  #cookies(header = ''): [name: string, value: string][] {
    return header.split(';').flatMap((pair): [string, string][] => {
      const [name = '', value = ''] = pair.split('=').map((part) => part.trim());
      return name.startsWith(this.#prefix) ? [[name, value]] : [];
    });
  }

  #serialize(name: string, value: string, maxAge: number): string {
    const attributes = `Path=/; Max-Age=${maxAge}; HttpOnly; SameSite=Lax`;
    return `${name}=${value}; ${attributes}${this.#secure ? '; Secure' : ''}`;
  }
}
