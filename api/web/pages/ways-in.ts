import type { ListedIdentity } from '../../../src/accounts/accounts/identities.js';
import type { IdentityKind } from '../../../src/types/sign-in-methods.js';
import { html, type Html } from '../../../src/lib/html.js';
import type { WebDependencies } from '../dependencies.js';
import { form } from './forms.js';
import { thenTo } from './sentences.js';
import { when } from './moment.js';

/** The configured ways to sign in, besides passwords. */
export interface WaysIn {
  /** Providers that the browser is redirected to. */
  readonly providers: readonly { readonly kind: 'google' | 'github'; readonly name: string }[];
  /** The chain of wallet signatures. */
  readonly chainId: number;
}

export function waysInOf({ providers, settings }: WebDependencies): WaysIn {
  const { chain, codeHost, identityProvider } = settings;
  const google = { kind: 'google', name: nameOf(identityProvider.issuerUrl) } as const;
  const github = { kind: 'github', name: nameOf(codeHost.url) } as const;
  return {
    providers: [google, github].filter(({ kind }) => providers[kind] !== undefined),
    chainId: chain.chainId,
  };
}

const KNOWN: Readonly<Record<string, string>> = {
  'accounts.google.com': 'Google',
  'github.com': 'GitHub',
};

function nameOf(url: string): string {
  const { host } = new URL(url);
  return KNOWN[host] ?? host;
}

/** The buttons for other ways to sign in, on `/login`. */
export const signInByOthers = ({ chainId, providers }: WaysIn): Html =>
  html`<div class="others">
    ${providers.map(
      ({ kind, name }) =>
        html`<p><a class="button" href="/api/auth/${kind}">Continue with ${name}</a></p>`,
    )}
    ${form({
      id: 'wallet',
      sends: ['POST', '/api/wallet-auth'],
      signsIn: true,
      chainId,
      then: '/dashboard',
      button: 'Continue with your wallet',
    })}
  </div>`;

const IDENTITIES = '/api/settings/identities';

/** Names of the kinds of identities. */
const KINDS: Readonly<Record<IdentityKind, string>> = {
  google: 'Google',
  github: 'GitHub',
  wallet: 'Wallet',
  farcaster: 'Farcaster',
};

/** Renders the linked identities on the dashboard, with buttons to link more. */
export function linkedAccounts(
  identities: readonly ListedIdentity[],
  { chainId, providers }: WaysIn,
): Html {
  const names: Readonly<Record<string, string>> = {
    ...KINDS,
    ...Object.fromEntries(providers.map(({ kind, name }) => [kind, name])),
  };
  const items = identities.map(
    ({ createdAt, id, kind, label, lastUsedAt }) =>
      html`<li>
        <p>
          <strong>${names[kind]}: ${label}</strong><br />
          Linked on ${when(createdAt)};
          ${lastUsedAt ? html`last used on ${when(lastUsedAt)}` : 'not used yet'}
        </p>
        ${form({
          id: `identity-${id}`,
          sends: ['DELETE', `${IDENTITIES}/${id}`],
          then: thenTo('/dashboard', 'unlinked'),
          button: 'Unlink',
          about: `Unlink ${label}`,
          dangerous: true,
        })}
      </li>`,
  );
  return html`${
    items.length > 0
      ? html`<ul class="things">
          ${items}
        </ul>`
      : html`<p>
          No linked accounts yet. You can sign in to this account with any account that you link.
        </p>`
  }
  ${providers.map(({ kind, name }) =>
    form({
      id: `link-${kind}`,
      sends: ['POST', `${IDENTITIES}/${kind}`],
      follows: 'url',
      button: `Link ${name}`,
    }),
  )}
  ${form({
    id: 'link-wallet',
    sends: ['POST', `${IDENTITIES}/wallet`],
    chainId,
    then: thenTo('/dashboard', 'linked'),
    button: 'Link your wallet',
  })}`;
}
