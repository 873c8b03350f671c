import { variable } from './area.js';
import { PrivateHosts } from './private-hosts.js';
import { entriesOf, textAs } from './types.js';

/** The hosts on the operator's own network. */
export const privateHostsVariable = variable(
  'PRIVATE_HOSTS',
  textAs('names, addresses or networks, separated by commas', (value) => {
    const hosts = new PrivateHosts();
    try {
      for (const entry of entriesOf(value)) hosts.add(entry);
    } catch {
      return undefined; // neither a name nor a network
    }
    return hosts;
  }).prefault(''),
  'hosts on a private network of the operator: in production, addresses in settings need no TLS if they lead to these hosts or to this machine',
);
