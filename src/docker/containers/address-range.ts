/** Returns the first and last address of an IPv4 network such as `10.231.0.16/28`, as numbers. */
export function addressRange(subnet: string): { readonly first: number; readonly last: number } {
  const [address = '', bits = '32'] = subnet.split('/');
  const size = 2 ** (32 - Number(bits));
  const value = address.split('.').reduce((sum, part) => sum * 256 + Number(part), 0);
  const first = value - (value % size);
  return { first, last: first + size - 1 };
}
