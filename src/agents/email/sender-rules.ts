import { domainOf } from './mailbox.js';
import type { EmailSettings } from './settings.js';

/** Reports whether an address is one of an agent: agents do not answer each other. */
export const isOwnDomain = (address: string, { domain }: Pick<EmailSettings, 'domain'>): boolean =>
  domainOf(address) === domain;

/** Reports whether the operator allows a sender to write to every agent. */
export const isListed = (
  address: string,
  { allowedSenders }: Pick<EmailSettings, 'allowedSenders'>,
): boolean => allowedSenders.has(address) || allowedSenders.has(`@${domainOf(address)}`);
