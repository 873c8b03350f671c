import { area, variable } from '../platform/environment/area.js';
import { text } from '../platform/environment/types.js';

export const workspaceSettings = area('File explorer', () => ({
  root: variable(
    'WORKSPACE_ROOT',
    text.optional(),
    'folder whose files operators read, write and commit; only one API process may use it',
    { whenUnset: '`workspace` in `DATA_DIR`' },
  ),
}));
