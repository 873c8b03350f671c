// Syncs a workspace, as the product does, in a separate process; remote names resolve to this machine.
import process from 'node:process';
import { allowedDestinations } from '../../dist-dev/src/platform/outbound/allowed-places.js';
import { OutboundClient } from '../../dist-dev/src/platform/outbound/outbound.js';
import { Workspace } from '../../dist-dev/src/workspace/workspace.js';

const [, , path, views, allow] = process.argv;
const resolve = () => Promise.resolve(['127.0.0.1']);
const remotes = new OutboundClient({ allow: allowedDestinations.parse(allow), resolve });
const answer = await new Workspace({ path, views, remotes }).gitSync('changed');
process.stdout.write(JSON.stringify(answer));
