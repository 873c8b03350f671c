import { area, variable, type SettingsOf } from '../../platform/environment/area.js';
import { choice } from '../../platform/environment/types.js';

export const cloneSettings = area('Clones', ({ production }) => ({
  payerProof: variable(
    'CLONE_PAYER_PROOF',
    choice('linked', 'required').prefault(production ? 'required' : 'linked'),
    'proof of the payer, since payments are public: `linked`: the payer is a linked wallet, or the user has none; `required`: the payer is a linked wallet, or signs',
  ),
}));

export type CloneSettings = SettingsOf<typeof cloneSettings>;
