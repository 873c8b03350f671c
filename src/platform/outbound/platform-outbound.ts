import type { HttpSettings } from '../http/settings.js';
import { OutboundClient, type OutboundOptions } from './outbound.js';
import type { OutboundSettings } from './settings.js';

/** Creates a process's client for addresses supplied by users, which refuses the platform's own addresses. */
export function platformOutbound(
  settings: {
    readonly http: Pick<HttpSettings, 'ownNames'>;
    readonly outbound: OutboundSettings;
  },
  options: Pick<OutboundOptions, 'connect' | 'resolve'> = {},
): OutboundClient {
  const { allow } = settings.outbound;
  const ownUrls = [...settings.http.ownNames]
    .map((name) => `http://${name}`)
    .filter((url) => URL.canParse(url));
  return new OutboundClient({ ...options, allow, ownUrls });
}
