import { createHash } from 'node:crypto';
import { addressRange } from './address-range.js';

/** Linux takes names of interfaces of 15 characters: 9 tell the installation, 6 the subnet. */
const INSTALLATION_LENGTH = 7;
const SUBNET_LENGTH = 6;

/**
 * What the names of all bridges of an installation's agents begin with, and of nobody else's on the
 * host: rules about where agents may go are known by it, not by addresses, which others may use too.
 */
export function bridgePrefix(installation: string): string {
  const digest = createHash('sha256').update(installation).digest().readBigUInt64BE();
  return `ag${digest.toString(36).slice(-INSTALLATION_LENGTH).padStart(INSTALLATION_LENGTH, '0')}`;
}

/** The bridge of one network: subnets do not overlap on a host, so no two have one name. */
export function bridgeName(installation: string, subnet: string): string {
  // Of 2^32 addresses there are 2^28 networks of 16, which are the smallest that agents get.
  const number = Math.floor(addressRange(subnet).first / 16);
  return bridgePrefix(installation) + number.toString(36).padStart(SUBNET_LENGTH, '0');
}
