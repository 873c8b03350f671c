import { isIP } from 'node:net';

/** Second labels below which country registries assign names, such as `co.uk` and `com.br`. */
const REGISTRY_LABELS: ReadonlySet<string> = new Set([
  ...['ac', 'co', 'com', 'edu', 'gob', 'gov', 'govt', 'gv', 'mil', 'ne', 'net', 'nom', 'or', 'org'],
]);

/**
 * Returns the name that is registered for a host, of which one owner decides; undefined for an address or a
 * single label. The public suffix list is not consulted: below a shared suffix like `github.io` two owners
 * count as one, which errs on the safe side.
 */
export function registrableDomain(host: string): string | undefined {
  const name = host.toLowerCase().replace(/\.$/, '');
  const labels = name.split('.');
  if (isIP(name.replace(/^\[|\]$/g, '')) !== 0 || labels.length < 2) return undefined;
  const [second = '', top = ''] = labels.slice(-2);
  const isCountry = top.length === 2 && REGISTRY_LABELS.has(second) && labels.length > 2;
  return labels.slice(isCountry ? -3 : -2).join('.');
}
