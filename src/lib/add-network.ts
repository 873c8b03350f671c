import { isIPv6, type BlockList } from 'node:net';

/** Adds a network such as `10.0.0.0/8`, or a single address. @throws for any other text */
export function addNetwork(list: BlockList, network: string): void {
  const [address = '', bits] = network.split('/');
  const family = isIPv6(address) ? 'ipv6' : 'ipv4';
  list.addSubnet(address, Number(bits ?? (family === 'ipv6' ? 128 : 32)), family);
}
