import { html } from '../../lib/html.js';
import type { MailKind, MailTokenKind } from '../../types/mail-kinds.js';
import { LINK_HOURS } from './mail-tokens.js';

export interface MailMessage {
  readonly subject: string;
  readonly text: string;
  readonly html: string;
}

interface Wording {
  readonly subject: string;
  /** Paragraphs. They contain no user input, not even a name. */
  readonly before: readonly string[];
  readonly link?: { readonly path: string; readonly kind: MailTokenKind };
  readonly after: readonly string[];
}

const VERIFY = { path: '/verify-email', kind: 'verify-email' } as const;

const WORDINGS: Readonly<Record<MailKind, Wording>> = {
  'verify-email': {
    subject: 'Confirm your address',
    before: ['An account was made with this address. Sign in and confirm that it is yours:'],
    link: VERIFY,
    after: ['If you have not made an account, you need not do anything.'],
  },
  'change-email': {
    subject: 'Confirm your new address',
    before: ['This is to become the address of an account. Sign in to it and confirm that:'],
    link: VERIFY,
    after: ['If you have not asked for that, you need not do anything.'],
  },
  'reset-password': {
    subject: 'Set a new password',
    before: ['A new password was asked for, for the account with this address. Set it here:'],
    link: { path: '/reset-password', kind: 'reset-password' },
    after: ['If you have not asked for one, you need not do anything: your password stays.'],
  },
  'email-change-asked': {
    subject: 'Your account is to have another address',
    before: [
      'Somebody who is signed in to your account wants to change its address. The address changes when the new one is confirmed.',
      'If this was not you, set a new password: this signs out all sessions.',
    ],
    after: [],
  },
  'email-changed': {
    subject: 'Your account has another address',
    before: [
      'The address of your account was changed, and this one is not its address any more.',
      'If this was not you, contact the operator of the service.',
    ],
    after: [],
  },
  'password-was-reset': {
    subject: 'Your password was reset',
    before: [
      'A new password was set for your account by a link that was sent to this address. Everybody who was signed in has been signed out. API keys have ended, unless the request kept them.',
      'If that was not you, somebody else reads your mail: secure your mailbox, and then set a new password.',
    ],
    after: [],
  },
  'keys-got-scopes': {
    subject: 'Your API keys have scopes now',
    before: [
      'API keys have scopes: agents, ai, files, gateway and money. Your present keys have all but money.',
      'Only a key with the scope money pays splits, settles bookings, creates or imports wallets, and opens payment sessions. If a program of yours does that, sign in, make a key with this scope, and give it to the program.',
    ],
    after: [],
  },
  'key-added': {
    subject: 'Your account has a new API key',
    before: [
      'A new API key was made for your account. Programs act by it in your name.',
      'If this was not you, sign in, delete the key, and set a new password: this signs out all sessions.',
    ],
    after: [],
  },
  'sign-in-added': {
    subject: 'Your account has a new way to sign in',
    before: [
      'A password, or an account elsewhere, was added to your account. It can be signed in with.',
      'If this was not you, sign in, remove it, and set a new password: this signs out all sessions.',
    ],
    after: [],
  },
  'sign-in-removed': {
    subject: 'Your account has lost a way to sign in',
    before: [
      'An account elsewhere was unlinked from your account. It cannot be signed in with any more.',
      'If this was not you, set a new password: this signs out all sessions.',
    ],
    after: [],
  },
  'bus-dead-letters': {
    subject: 'Messages for your agent were not delivered',
    before: [
      'Messages of other agents for an agent of yours could not be delivered within a day, or its webhook refused them.',
      'Check the webhook of the agent, and deliver the messages again by POST /api/underground/bus/messages/<messageId>/redeliver.',
    ],
    after: [],
  },
  'plan-ended': {
    subject: 'Your plan has ended',
    before: [
      'The plan of your account has ended, because it was cancelled, refunded or not paid for.',
      'Your running agents keep running. No agent can be started, and the AI models of the plan do not answer, until you choose a plan on your dashboard.',
    ],
    after: [],
  },
};

export const tokenKindOf = (kind: MailKind): MailTokenKind | undefined => WORDINGS[kind].link?.kind;

/** Builds a mail; `webUrl` and `token` make the link of the kinds that have one. */
export function messageOf(kind: MailKind, webUrl: string, token: string | undefined): MailMessage {
  const { subject, before, link, after } = WORDINGS[kind];
  const address = link && token && new URL(`${webUrl}${link.path}?token=${token}`).href;
  const good = link && `The link is good for ${hours(LINK_HOURS[link.kind])}, and once.`;
  const last = good === undefined ? after : [good, ...after];
  const lines = [...before, ...(address ? [address] : []), ...last];
  const anchor = address && html`<p><a href="${address}">${address}</a></p>`;
  const paragraphs = (texts: readonly string[]) => texts.map((each) => html`<p>${each}</p> `);
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <title>${subject}</title>
      </head>
      <body>
        ${paragraphs(before)} ${anchor} ${paragraphs(last)}
      </body>
    </html>`;
  return { subject, text: `${lines.join('\n\n')}\n`, html: page.text };
}

const hours = (count: number): string => (count === 1 ? 'an hour' : `${count} hours`);
