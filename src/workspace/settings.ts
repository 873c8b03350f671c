import { area, variable } from '../platform/environment/area.js';
import { text } from '../platform/environment/types.js';

export const workspaceSettings = area('File explorer', () => ({
  root: variable(
    'WORKSPACE_ROOT',
    text.optional(),
    'the folder whose files operators read, write and commit; one API process has it',
    { whenUnset: '`workspace` in `DATA_DIR`' },
  ),
}));
