"""Who answers: adapters for models behind APIs, programs and scripts, all behind one seam."""
