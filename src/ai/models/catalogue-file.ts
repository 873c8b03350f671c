import { readSettingsFile } from '../../platform/environment/settings-file.js';
import { readCatalogue, type Catalogue } from './catalogue.js';

export const SHIPPED_FILE = 'models.json';

/** Reads a file of models, by default the shipped one. @throws SettingsFileError */
export const loadCatalogue = (file?: string): Catalogue =>
  readCatalogue(readSettingsFile(SHIPPED_FILE, file));
