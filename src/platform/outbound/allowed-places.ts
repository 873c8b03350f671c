import { entriesOf, textAs } from '../environment/types.js';
import { readAllowed } from './reachable.js';

/** `10.0.0.0/8, 192.168.1.5, 127.0.0.1:8080, [::1]:8080` */
export const allowedDestinations = textAs(
  'addresses, networks, or addresses with ports, separated by commas',
  (value) => readAllowed(entriesOf(value)),
);
