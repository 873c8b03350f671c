import { createHash } from 'node:crypto';
import { addressRange } from './address-range.js';

/** Linux interface names have 15 characters: 9 for the installation (with a prefix), 6 for the subnet. */
const INSTALLATION_LENGTH = 7;
const SUBNET_LENGTH = 6;

/** Returns the prefix of an installation's bridges, which firewall rules match: addresses may be shared. */
export function bridgePrefix(installation: string): string {
  const digest = createHash('sha256').update(installation).digest().readBigUInt64BE();
  return `ag${digest.toString(36).slice(-INSTALLATION_LENGTH).padStart(INSTALLATION_LENGTH, '0')}`;
}

/** Returns the bridge name of a network; unique, since subnets do not overlap on a host. */
export function bridgeName(installation: string, subnet: string): string {
  // The smallest agent network has 16 addresses, so there are at most 2^28 networks.
  const number = Math.floor(addressRange(subnet).first / 16);
  return bridgePrefix(installation) + number.toString(36).padStart(SUBNET_LENGTH, '0');
}
