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
    before: [
      'An account was created with this address. Sign in and confirm that the address is yours:',
    ],
    link: VERIFY,
    after: ['If you have not created an account, ignore this mail.'],
  },
  'change-email': {
    subject: 'Confirm your new address',
    before: ['An account is to get this address. Sign in to the account and confirm the address:'],
    link: VERIFY,
    after: ['If you have not requested this, ignore this mail.'],
  },
  'reset-password': {
    subject: 'Set a new password',
    before: [
      'A new password was requested for the account with this address. Set the password here:',
    ],
    link: { path: '/reset-password', kind: 'reset-password' },
    after: ['If you have not requested this, ignore this mail: your password does not change.'],
  },
  'email-change-asked': {
    subject: 'A new address was requested for your account',
    before: [
      'A session of your account has requested a new address for the account. The address changes when the new one is confirmed.',
      'If this was not you, set a new password: this ends all sessions.',
    ],
    after: [],
  },
  'email-changed': {
    subject: 'The address of your account has changed',
    before: [
      'The address of your account was changed. This mailbox no longer belongs to the account.',
      'If this was not you, contact the operator of the service.',
    ],
    after: [],
  },
  'password-was-reset': {
    subject: 'Your password was reset',
    before: [
      'A new password was set for your account by a link that was sent to this address. All sessions have ended. API keys have ended as well, unless the request kept them.',
      'If this was not you, another person can read your mail: secure your mailbox, and then set a new password.',
    ],
    after: [],
  },
  'keys-got-scopes': {
    subject: 'Your API keys have scopes now',
    before: [
      'API keys have scopes: agents, ai, files, gateway and money. Your present keys have all but money.',
      'Only a key with the scope money pays splits, settles bookings, creates or imports wallets, and opens payment sessions. If one of your programs needs this, sign in, create a key with this scope, and use it in the program.',
    ],
    after: [],
  },
  'key-added': {
    subject: 'Your account has a new API key',
    before: [
      'A new API key was created for your account. Programs can use it to act in your name.',
      'If this was not you, sign in, delete the key, and set a new password: this ends all sessions.',
    ],
    after: [],
  },
  'sign-in-added': {
    subject: 'A sign-in method was added to your account',
    before: [
      'A password, or an account at another service, was added to your account as a sign-in method.',
      'If this was not you, sign in, remove it, and set a new password: this ends all sessions.',
    ],
    after: [],
  },
  'sign-in-removed': {
    subject: 'A sign-in method was removed from your account',
    before: [
      'An account at another service was unlinked from your account. It can no longer be used to sign in.',
      'If this was not you, set a new password: this ends all sessions.',
    ],
    after: [],
  },
  'bus-dead-letters': {
    subject: 'Messages for your agent were not delivered',
    before: [
      'Messages of other agents for one of your agents could not be delivered within a day, or its webhook refused them.',
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
  const good =
    link && `The link is valid for ${hours(LINK_HOURS[link.kind])}, and can be used once.`;
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
