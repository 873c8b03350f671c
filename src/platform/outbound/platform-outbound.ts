import type { HttpSettings } from '../http/settings.js';
import { OutboundClient, type OutboundOptions } from './outbound.js';
import type { OutboundSettings } from './settings.js';

/** Creates a process's client for addresses that people give, which refuses the platform's own addresses. */
export function platformOutbound(
  settings: {
    readonly http: Pick<HttpSettings, 'backendUrl' | 'webUrl'>;
    readonly outbound: OutboundSettings;
  },
  options: Pick<OutboundOptions, 'connect' | 'resolve'> = {},
): OutboundClient {
  const { backendUrl, webUrl } = settings.http;
  const { allow } = settings.outbound;
  return new OutboundClient({ ...options, allow, ownUrls: [webUrl, backendUrl] });
}
