import { isIP } from 'node:net';
import { OutboundError } from './outbound-error.js';

/** Maximum number of characters of a URL. */
const MAX_URL_LENGTH = 8_192;

/** Ports of other protocols, as browsers block them: such a server could read a request as commands. */
const OTHER_PROTOCOLS = new Set([
  ...[0, 1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95],
  ...[101, 102, 103, 104, 109, 110, 111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179],
  ...[389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532, 540, 548, 554, 556, 563, 587, 601],
  ...[636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061, 6000, 6566],
  ...[6665, 6666, 6667, 6668, 6669, 6679, 6697, 10_080],
]);

export interface Target {
  readonly url: URL;
  /** A name, or an IP address without brackets. */
  readonly host: string;
  readonly isAddress: boolean;
  readonly port: number;
}

/**
 * Parses a URL as browsers do, exactly once, so that the checked address is the connected one.
 * @param base the URL that relative ones refer to.
 * @throws OutboundError `INVALID_URL` for unreadable URLs, `URL_NOT_ALLOWED` for refused ones.
 */
export function readTarget(text: string, base?: URL): Target {
  if (text.length > MAX_URL_LENGTH || !URL.canParse(text, base?.href)) {
    throw new OutboundError('INVALID_URL', 'The URL is invalid');
  }
  const url = new URL(text, base);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    throw new OutboundError('URL_NOT_ALLOWED', 'Only http and https URLs are allowed');
  }
  if (url.username !== '' || url.password !== '') {
    throw new OutboundError('URL_NOT_ALLOWED', 'A URL with a user or a password is not allowed');
  }
  const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
  if (OTHER_PROTOCOLS.has(port)) {
    throw new OutboundError('URL_NOT_ALLOWED', `Port ${port} is not allowed`);
  }
  const host = url.hostname.replace(/^\[|\]$/g, '');
  if (host === '' || host === '.') throw new OutboundError('INVALID_URL', 'The URL has no host');
  url.hash = '';
  return { url, host, isAddress: isIP(host) !== 0, port };
}
